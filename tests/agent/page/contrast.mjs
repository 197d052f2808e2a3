// Contrast ratios as WCAG 2.2 defines them, of what is drawn.

/**
 * Runs in the page. Of each text with its background, and of each border that carries meaning with what is around it:
 * [{what, ratio}].
 */
export function contrastsIn() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  canvas.canvas.width = canvas.canvas.height = 1;
  const known = new Map();
  const channels = (colour) => {
    if (known.has(colour)) return known.get(colour);
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    known.set(colour, { parts: [red, green, blue], alpha });
    return known.get(colour);
  };
  const luminance = (colour) => {
    const [red, green, blue] = channels(colour).parts.map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ratioOf = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const backgroundOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (channels(colour).alpha === 255) return colour;
    }
    return "white";
  };
  const nameOf = (element) => `${element.tagName} #${element.id} .${element.className}: ${element.textContent.slice(0, 30)}`;

  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const style = getComputedStyle(element);
    if (!node.data.trim() || !element.checkVisibility() || parseFloat(style.fontSize) === 0) continue;
    if (element.closest(".unseen, option")) continue;
    texts.push({ what: nameOf(element), ratio: ratioOf(style.color, backgroundOf(element)) });
  }
  for (const header of document.querySelectorAll("#columns button")) {
    texts.push({ what: "the sign of the order", ratio: ratioOf(getComputedStyle(header, "::after").color, backgroundOf(header)) });
  }
  const borders = [];
  const meaning = ".cpu, .swatch, .package, .node, .cache, .scroll, select, input[type=search], #events .trouble, #close, #status.bad";
  for (const element of document.querySelectorAll(meaning)) {
    const style = getComputedStyle(element);
    const side = ["Left", "Bottom"].find((one) => parseFloat(style[`border${one}Width`]) > 0);
    const around = backgroundOf(element.parentElement);
    borders.push({ what: nameOf(element), ratio: side ? ratioOf(style[`border${side}Color`], around) : 0 });
    if (element.matches(".marked")) borders.push({ what: "the mark", ratio: ratioOf(style.outlineColor, around) });
  }
  return { texts, borders };
}
