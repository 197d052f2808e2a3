// The theme that was chosen, set before anything is drawn. A script of its own, as modules run later.
(() => {
  const kKey = "topolet-theme";
  const kThemes = ["system", "light", "dark"];
  // A browser may forbid a page to keep anything.
  const stored = () => {
    try { return localStorage.getItem(kKey); } catch { return null; }
  };
  const store = (theme) => {
    try { localStorage.setItem(kKey, theme); } catch { /* It lasts until the page is left. */ }
  };
  const show = (theme) => { document.documentElement.dataset.theme = theme; };

  const chosen = kThemes.includes(stored()) ? stored() : "system";
  show(chosen);
  document.addEventListener("DOMContentLoaded", () => {
    const select = document.getElementById("theme");
    select.value = chosen;
    select.addEventListener("change", () => { show(select.value); store(select.value); });
  });
})();
