// Measures the frames of the inspector's page while a server has very many actors and subscribers. Run manually, because it takes minutes:
//
//     TREBUCHET_BROWSER=/usr/bin/chromium TREBUCHET_PROGRAMS=.build/release node Web/test/browser/inspector-frames.mjs [ACTORS [SUBSCRIBERS [SECONDS]]]
//
// Prints for each view the number of frames, the longest one, and the longest task of the page; exits with 1 when one took more than 100 ms.
import { inspected, isLive, wait } from "./inspected.mjs"

const [actors = 100_000, subscribers = 1_000, seconds = 10] = process.argv.slice(2).map(Number)
const most = 100

const { chromium, link, client } = await inspected("--services", "none")

// The maximum of actors per connection.
const part = 900
for (let first = 0; first < actors; first += part) {
    const maker = client()
    const names = Array.from({ length: Math.min(part, actors - first) }, (_, at) => `counters/${100_000 + first + at}`)
    await Promise.all(names.map((name) => maker.actor(name).call("add(_:)", [1])))
    maker.close()
}
let seen = 0
const observers = Array.from({ length: subscribers }, () => {
    const observer = client()
    observer.actor("counter").state("observeState").subscribe(() => seen++)
    return observer
})
const caller = client()
setInterval(() => caller.actor("counter").call("add(_:)", [1]).catch(() => {}), 50)
while (seen < subscribers) await wait(100)
console.log(`${actors} actors, ${subscribers} subscribers of one that changes 20 times a second`)

const window = await chromium.open(link, { width: 1280, height: 860 })
await window.until(isLive)
await window.evaluate(`{
    window.frames_ = []
    window.tasks_ = []
    let last = performance.now()
    const frame = (time) => {
        frames_.push(time - last)
        last = time
        requestAnimationFrame(frame)
    }
    requestAnimationFrame(frame)
    new PerformanceObserver((list) => tasks_.push(...list.getEntries().map(({ duration }) => duration))).observe({ entryTypes: ["longtask"] })
}`)
const search = `{ const field = document.querySelector("input[type=search]"); field.value = "777"; field.dispatchEvent(new Event("input")) }`
let slowest = 0
for (const [name, hash, then] of [
    ["overview", "#/"], ["actors", "#/actors"], ["search", "#/actors", search], ["actor", "#/actors/counter"], ["connections", "#/connections"],
    ["calls", "#/calls"], ["log", "#/log"], ["errors", "#/errors"],
]) {
    await window.evaluate(`location.hash = ${JSON.stringify(hash)}`)
    await wait(1_000)
    if (then) await window.evaluate(then)
    await window.evaluate("frames_.length = tasks_.length = 0")
    await wait(seconds * 1_000)
    const [frames, longest, task] = await window.evaluate("[frames_.length, Math.round(Math.max(...frames_)), Math.round(Math.max(0, ...tasks_))]")
    slowest = Math.max(slowest, longest, task)
    console.log(`${name.padEnd(12)} ${String(frames).padStart(5)} frames, the longest ${longest} ms; the longest task ${task || "under 50"} ms`)
}
if (window.thrown.length > 0) console.log("thrown:", window.thrown)
process.exit(slowest > most || window.thrown.length > 0 ? 1 : 0)
