// Pictures of each view of the inspector, light and dark, as Docs/images has them. By hand, to be looked at:
//
//     TREBUCHET_BROWSER=/usr/bin/chromium TREBUCHET_PROGRAMS=.build/release TREBUCHET_PICTURES=Docs/images \
//         node Web/test/browser/inspector-pictures.mjs [VIEW,… [OPTIONS OF serve]]
//
// `nodes` shows something with '--cluster redis://… --node NAME' alone, `store` with '--data FILE'.
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { join } from "node:path"
import { connect } from "../../dist/trebuchet.js"
import { WebSocket } from "../sockets.mjs"
import { Chromium } from "./chromium.mjs"

const [views = "overview,actors,actor,connections,calls,log,errors", ...options] = process.argv.slice(2)
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const server = spawn(
    join(process.env.TREBUCHET_PROGRAMS, "trebuchet"), ["serve", "--port", "0", "--demo", "--inspector", ...options],
    { stdio: ["ignore", "pipe", "ignore"] })
const chromium = await Chromium.start(process.env.TREBUCHET_BROWSER)
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(1))
process.once("exit", () => {
    server.kill("SIGKILL")
    chromium.kill()
})

let url
let link
for await (const line of createInterface(server.stdout)) {
    url ??= /ws:\/\/\S+/.exec(line)?.[0]
    link ??= /^inspector: (\S+)/.exec(line)?.[1]
    if (line.startsWith("try: ")) break
}
const windows = []
for (const [name, dark] of [["light", false], ["dark", true]]) {
    const window = await chromium.open(link, { width: 1280, height: 860, dark, beside: windows[0]?.window })
    await window.until(`document.querySelector("#status").dataset.is === "live"`)
    windows.push({ name, window })
    await window.evaluate(`location.hash = "#/actors/game"`)
}

// Two play, one goes wrong.
const [ada, bob, wrong] = [1, 2, 3].map(() => connect(url, { WebSocket }))
for (const each of [ada, bob]) each.actor("game").state("observeGameState").subscribe(() => {})
await ada.actor("game").call("join(player:)", ["ada"])
await bob.actor("game").call("join(player:)", ["bob"])
for (let at = 0; at < 40; at++) await ada.actor(`counters/${at}`).call("add(_:)", [1])
const play = async () => {
    for (let at = 0; at < 5; at++) {
        await Promise.all([
            ada.actor("game").call("advanceLevel()", []), bob.actor("counters/7").call("add(_:)", [1]),
            wrong.actor("game").call("cheat(score:)", [1000]).catch(() => {}),
        ])
        await wait(60)
    }
}
for (const view of views.split(",")) {
    const hash = view === "overview" ? "#/" : view === "actor" ? "#/actors/game" : `#/${view}`
    for (const { name, window } of windows) {
        await window.evaluate(`location.hash = ${JSON.stringify(hash)}`)
        for (let at = 0; at < 8; at++) await play()
        await wait(300)
        await window.picture(`inspector-${view}-${name}`)
    }
}
process.exit(0)
