// Reports in a real browser: screenshots at the widths of a desk and of a phone, light, dark and printed, axe-core and
// html-validate over each, and nothing loaded.  node look.mjs FOLDER_OF_PACKAGES FOLDER_OF_SCREENSHOTS PAGE...
import { createRequire } from "node:module";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [packages, shots, ...pages] = process.argv.slice(2).map((one) => resolve(one));
const require = createRequire(`${packages}/`);
const puppeteer = require("puppeteer-core");
const { HtmlValidate } = require("html-validate");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const places = ["chromium", "chromium-browser", "google-chrome"].map((name) => `/usr/bin/${name}`);
const browserPath = process.env.BROWSER ?? places.find((one) => existsSync(one));
if (!browserPath) throw new Error("no Chromium: install the system's package, or name one in BROWSER");

const looks = [
  { name: "desktop", width: 1280, height: 900, scheme: "light" },
  { name: "desktop-dark", width: 1280, height: 900, scheme: "dark" },
  { name: "phone", width: 390, height: 844, scheme: "light", isMobile: true },
  { name: "phone-dark", width: 320, height: 640, scheme: "dark", isMobile: true },
];
const problems = [];
mkdirSync(shots, { recursive: true });
const validator = new HtmlValidate({ extends: ["html-validate:standard"] });
const browser = await puppeteer.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu"] });
try {
  for (const path of pages) {
    const stem = basename(path, ".html");
    for (const { messages } of (await validator.validateFile(path)).results)
      for (const one of messages) problems.push(`${stem}:${one.line}: ${one.ruleId}: ${one.message}`);
    for (const { name, scheme, ...size } of looks) {
      const page = await browser.newPage();
      page.on("request", (one) => one.url().startsWith("file:") || problems.push(`${stem}: loads ${one.url()}`));
      page.on("console", (one) => problems.push(`${stem}: console: ${one.text()}`));
      await page.setViewport({ ...size, deviceScaleFactor: 1 });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.goto(pathToFileURL(path).href);
      await page.evaluate(() => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
      await page.evaluate(axe);
      const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations", "incomplete"] }));
      for (const one of found.violations)
        problems.push(`${stem}, ${name}: ${one.id}: ${one.help}: ${one.nodes.map((node) => node.target).join(" ")}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (wide > 0) problems.push(`${stem}, ${name}: ${wide} pixels wider than the screen`);
      const cut = await page.evaluate(() => {
        const words = [...document.querySelectorAll("svg text")];
        const out = words.filter((word) => {
          const [a, b] = [word.getBoundingClientRect(), word.closest("svg").getBoundingClientRect()];
          return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1;
        });
        const small = words.filter((word) => word.getBoundingClientRect().height < 9);
        const over = words.filter((word) => words.some((other) => {
          const [a, b] = [word.getBoundingClientRect(), other.getBoundingClientRect()];
          return word !== other && word.closest("svg") === other.closest("svg")
            && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
        }));
        const told = (list, what) => list.map((word) => `${what}: ${word.textContent}`);
        return [...told(out, "cut off"), ...told(small, "too small to read"), ...told(over, "overlaps")];
      });
      for (const one of cut) problems.push(`${stem}, ${name}: in a picture, ${one}`);
      await page.screenshot({ path: `${shots}/${stem}-${name}.png`, fullPage: true });
      console.log(`${stem}, ${name}: ${found.passes.length} rules of axe pass, ${found.incomplete.length} undecided`);
      await page.close();
    }
    const page = await browser.newPage();
    await page.goto(pathToFileURL(path).href);
    await page.pdf({ path: `${shots}/${stem}.pdf`, format: "A4", printBackground: true });
    await page.close();
  }
} finally {
  await browser.close();
}
for (const one of problems) console.error(one);
console.log(`${pages.length} pages, ${problems.length} problems; screenshots in ${shots}`);
process.exitCode = problems.length ? 1 : 0;
