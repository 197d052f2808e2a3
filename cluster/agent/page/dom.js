// Functions that create and find elements. Text is only ever set as text: names and reasons come from pods.

export const find = (id) => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export function setText(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

export function setAttribute(where, name, value) {
  if (where.getAttribute(name) !== value) where.setAttribute(name, value);
}

export const nameOf = (one) => `${one.pod_namespace}/${one.pod_name}/${one.key.name}`;

/** Calls `work` once `delayMs` after it was asked for, however often that is, and at most once in `pauseMs`. */
export function atMostOncePer(pauseMs, work, delayMs = 0) {
  let last = -Infinity;
  let timer = null;
  return () => {
    if (timer !== null) return;
    timer = setTimeout(() => {
      timer = null;
      last = performance.now();
      work();
    }, Math.max(delayMs, pauseMs - (performance.now() - last)));
  };
}
