// Videos as cards, failures first. Cards come as one scrolls, and only those in sight hold a video.
const gallery = document.getElementById("gallery");
const CARDS_AT_A_TIME = 24;
let cards = [];
let nShown = 0;

function card(e) {
  const video = make("video", { playsinline: true, preload: "metadata", tabindex: -1, "aria-hidden": "true" });
  video.muted = true;
  // The last moment says more about a failure than the first.
  video.addEventListener("loadedmetadata", () => { video.currentTime = Math.max(0, video.duration - 0.05); });
  const shot = make("button", { type: "button", class: "shot", onclick: () => openEpisode(e), "aria-label": `${e.shown}, episode ${e.index}, ${WORDS[e.end]}` },
    make("span", { class: "frame" }, video, make("span", { class: `mark ${e.end}` }, WORDS[e.end]), swatch(e.run, "whose")),
    make("span", { class: "words" }, make("b", { title: e.shown }, ...breakable(e.task.name)), make("span", {}, `episode ${e.index} · ${number(e.steps)} steps`)));
  const play = () => { video.currentTime = 0; video.playbackRate = 2; video.play().catch(() => {}); };
  const rest = () => { video.pause(); if (video.duration) video.currentTime = Math.max(0, video.duration - 0.05); };
  shot.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") play(); });
  shot.addEventListener("pointerleave", rest);
  shot.episode = e;
  inSight.observe(shot);
  return shot;
}

const inSight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const video = target.querySelector("video");
    if (isIntersecting) { if (!video.src) video.src = address(target.episode.video); }
    else if (video.src) { video.removeAttribute("src"); video.load(); } // browsers allow few players at a time
  }
}, { rootMargin: "300px" });

const more = make("div", { class: "more" });
const atTheEnd = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) addCards(); }, { rootMargin: "600px" });

function addCards() {
  const next = cards.slice(nShown, nShown + CARDS_AT_A_TIME);
  nShown += next.length;
  more.before(...next.map(card));
  // Observed anew: it may be in sight still, and then says so again.
  atTheEnd.unobserve(more);
  if (nShown < cards.length) atTheEnd.observe(more);
}

function showGallery(list) {
  inSight.disconnect();
  cards = list.filter((e) => e.video);
  nShown = 0;
  gallery.replaceChildren(more);
  addCards();
}
