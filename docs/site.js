// Material lets a wide table scroll in a box of its own; with a tab stop the keyboard scrolls it, too.
const reach = () =>
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((box) => (box.tabIndex = 0));
new MutationObserver(reach).observe(document.body, { childList: true, subtree: true });
reach();
