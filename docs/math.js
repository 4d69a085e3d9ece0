// Formulas are code blocks of the language `math`, so that other readers of Markdown show them too. MathJax gets them here.
document.querySelectorAll("code.language-math").forEach((code) => {
    const formula = document.createElement("div");
    formula.textContent = "\\[" + code.textContent + "\\]";
    code.closest("pre").replaceWith(formula);
});
