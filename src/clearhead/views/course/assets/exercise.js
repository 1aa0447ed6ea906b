// Exercises: predict, check, then see. The answer can only be shown after a try.

// Right if it is the answer, rounded to as many decimals as were typed (at least those asked for).
function isRight(typed, { answer, decimals }) {
  const plain = typed.replace(/(?<=\d)[,\s](?=\d{3}(\D|$))/g, decimals === 0 ? "" : "$&"); // 1,048,576
  const found = numberOf(plain);
  if (found === null) return null;
  if (plain.includes("/")) return Math.abs(found - answer) < 1e-9;
  const digits = (plain.replace(",", ".").split(".")[1] ?? "").length;
  if (digits < decimals && found !== answer) return Number(answer.toFixed(decimals)) === found;
  return Math.abs(found - answer) <= 0.5 * 10 ** -digits + 1e-12;
}

class Exercise {
  constructor(element, data, tried) {
    Object.assign(this, { element, data, tried });
    this.verdict = element.querySelector(".verdict");
    this.answer = element.querySelector(".answer");
    this.reveal = element.querySelector(".reveal");
    this.answer.hidden = true;
    this.reveal.disabled = true;
    this.reveal.addEventListener("click", () => this.show());
    element.querySelector(".try")?.addEventListener("submit", (event) => {
      event.preventDefault();
      this.check();
    });
    for (const button of element.querySelectorAll("[data-choice]")) button.addEventListener("click", () => this.choose(button));
  }
  check() {
    const boxes = [...this.element.querySelectorAll(".try input")];
    const found = boxes.map((box, i) => isRight(box.value, { answer: this.data.answer[i], decimals: this.data.decimals }));
    boxes.forEach((box, i) => box.setAttribute("aria-invalid", String(found[i] !== true)));
    if (found.includes(null)) this.tell(false, "That is not a number yet.");
    else this.judge(found.every(Boolean));
  }
  choose(button) {
    for (const one of this.element.querySelectorAll("[data-choice]")) one.setAttribute("aria-pressed", String(one === button));
    this.judge(Number(button.dataset.choice) === this.data.answer[0]);
  }
  judge(right) {
    this.reveal.disabled = false;
    this.tell(right, right ? "Right." : "Not yet. Try again, or look at the answer.");
    if (right) {
      this.show();
      this.tried(true);
    }
  }
  tell(right, text) {
    this.verdict.className = `verdict ${right ? "good" : "bad"}`;
    this.verdict.textContent = text;
  }
  show() {
    this.answer.hidden = false;
  }
}
