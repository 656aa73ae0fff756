// Writes pictures of each view of the inspector, light and dark, as in Docs/images. Run manually, and check the pictures:
//
//     TREBUCHET_BROWSER=/usr/bin/chromium TREBUCHET_PROGRAMS=.build/release TREBUCHET_PICTURES=Docs/images \
//         node Web/test/browser/inspector-pictures.mjs [VIEW,… [OPTIONS OF serve]]
//
// `nodes` has content only with '--cluster redis://… --node NAME', `store` only with '--data FILE'.
import { inspected, isLive, wait } from "./inspected.mjs"

const [views = "overview,actors,actor,connections,calls,log,errors", ...options] = process.argv.slice(2)
const { chromium, link, client } = await inspected(...options)
const windows = []
for (const [name, dark] of [["light", false], ["dark", true]]) {
    const window = await chromium.open(link, { width: 1280, height: 860, dark, beside: windows[0]?.window })
    await window.until(isLive)
    windows.push({ name, window })
    await window.evaluate(`location.hash = "#/actors/game"`)
}

// Two clients play, one makes errors.
const [ada, bob, wrong] = [1, 2, 3].map(client)
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
