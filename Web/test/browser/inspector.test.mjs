// The inspector in Chromium: two clients play, a third makes errors, and the page shows the cause of each change.
import assert from "node:assert/strict"
import { execFile, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import test, { after, before } from "node:test"
import { join } from "node:path"
import { promisify } from "node:util"
import { connect } from "../../dist/trebuchet.js"
import { WebSocket } from "../sockets.mjs"
import { Chromium } from "./chromium.mjs"

const tool = join(process.env.TREBUCHET_PROGRAMS, "trebuchet")
const run = promisify(execFile)
let chromium
let server
const clients = []

for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(1))
process.once("exit", () => {
    server?.kill("SIGKILL")
    chromium?.kill()
})

/** A server, the address for clients, and the link to its inspector. */
async function serve(...options) {
    return serveAt([], ...options)
}

/** - inspector: the port of the inspector; undefined for a free one. */
async function serveAt(inspector, ...options) {
    server = spawn(tool, ["serve", "--examples", "--port", "0", "--inspector", ...inspector, ...options], { stdio: ["ignore", "pipe", "ignore"] })
    const found = {}
    for await (const line of createInterface(server.stdout)) {
        found.url ??= /ws:\/\/\S+/.exec(line)?.[0]
        found.link ??= /^inspector: (\S+)/.exec(line)?.[1]
        if (line.startsWith("try: ")) break
    }
    assert.ok(found.url && found.link)
    return found
}

function client(url) {
    const made = connect(url, { WebSocket })
    clients.push(made)
    return made
}

before(async () => (chromium = await Chromium.start(process.env.TREBUCHET_BROWSER)))
after(async () => {
    for (const each of clients) each.close()
    server?.kill("SIGTERM")
    await chromium?.close()
})

const isLive = `document.querySelector("#status").dataset.is === "live"`

test("the page shows the calls that made a version, its recipients, and the reason of a refusal", async () => {
    const { url, link } = await serve("--inspector-write")
    const [ada, bob, wrong] = [client(url), client(url), client(url)]
    const seen = [ada, bob].map((each) => {
        const state = each.actor("game").state("observeGameState")
        state.subscribe(() => {})
        return state
    })
    await ada.actor("game").call("join(player:)", ["ada"])
    // A state so large that deltas are smaller than the value.
    for (const length of [40, 41, 42]) await ada.actor("game").call("join(player:)", ["eve".repeat(length)])
    const window = await chromium.open(link, { width: 1280, height: 860 })
    await window.until(isLive)
    // The URL no longer has the token, and a reload does not request it.
    assert.equal(await window.evaluate("location.hash"), "#/")
    await window.send("Page.reload")
    await window.until(isLive)
    await window.shows("Methods with the most calls")
    await window.shows("join(player:)")

    await window.evaluate(`location.hash = "#/actors"`)
    await window.shows("game", "tbody")
    await window.click(`a[href="#/actors/game"]`)
    await window.shows("since")
    await window.shows(`"ada"`, ".tree")
    await bob.actor("game").call("join(player:)", ["<b>bob</b>"])
    // Content of a state is shown as text.
    await window.shows(`"<b>bob</b>"`, ".tree")
    assert.equal(await window.evaluate(`document.querySelectorAll(".tree b").length`), 0)
    await ada.actor("game").call("advanceLevel()", [])
    await window.shows("advanceLevel()", ".line")
    const text = () => window.evaluate(`document.querySelector(".detail").innerText`)
    await window.shows("advanceLevel()", ".detail")
    assert.match(await text(), /2\s+sent as a patch/)
    assert.match(await text(), /replace\s+\/level/)
    await window.shows("level:\n2", ".tree")

    // An earlier version: the state, and the calls that made it.
    await window.click(".step button")
    await window.shows("join(player:)", ".detail")
    await window.shows("level:\n1", ".tree")
    await window.shows(`["<b>bob</b>"]`, ".detail")
    await window.click(".step button:last-child")
    await window.shows("level:\n2", ".tree")

    // A call from the page with another principal.
    await window.until(`document.querySelector("form.call select").options.length === 2`)
    await window.evaluate(`{
        const method = document.querySelector("form.call select")
        method.value = "join(player:)"
        method.dispatchEvent(new Event("change"))
    }`)
    await window.type("form.call textarea", `["carol"]`)
    await window.type("form.call input", "carol")
    await window.click("form.call button")
    await window.shows("carol", ".answer")
    await window.shows(`"carol"`, ".tree")

    await assert.rejects(wrong.actor("game").call("cheat(score:)", [1000]))
    await window.evaluate(`location.hash = "#/connections"`)
    await window.shows("methodNotFound")
    await window.shows("has no method 'cheat(score:)'")
    await window.evaluate(`location.hash = "#/errors"`)
    await window.shows("methodNotFound")
    for (const view of ["calls", "store", "nodes"]) {
        await window.evaluate(`location.hash = "#/${view}"`)
        await window.until(`document.querySelector("h1").innerText.toLowerCase() === "${view}" && ${isLive}`)
    }
    // Each closed connection reconnects.
    await window.evaluate(`location.hash = "#/connections"`)
    await window.until(`document.querySelectorAll("button[data-close]").length >= 3`)
    const first = await window.evaluate(`document.querySelector("button[data-close]").dataset.close`)
    await window.click(`button[data-close="${first}"]`)
    await window.until(`!document.querySelector('button[data-close="${first}"]')`)
    assert.deepEqual(seen.map((state) => state.getSnapshot().level), [2, 2])
    assert.deepEqual(window.thrown, [])

    // Another window has no token, and a wrong one is refused.
    const other = await chromium.open(link.replace(/#.*/, ""))
    await other.shows("Connect to an inspector")
    await other.type("form.link input", "wrong")
    await other.enter()
    await other.shows("The token is invalid for this server.")
    await other.type("form.link input", link)
    await other.enter()
    await other.until(isLive)
    assert.deepEqual(other.thrown, [])
    await Promise.all([window.close(), other.close()])
    const { stdout } = await run(tool, ["inspect", "actor", "game", "--url", link])
    assert.match(stdout, /game/)
})

test("with two players and a failing third, the page shows the calls of version 42, the missing recipient, and the reason of a refusal", async () => {
    server?.kill("SIGTERM")
    const { url, link } = await serve("--bench")
    const [ada, bob] = [client(url), client(url)]
    const sockets = []
    // The third client stops reading on request.
    class Slow extends WebSocket {
        constructor(...given) {
            super(...given)
            sockets.push(this)
        }
    }
    const carol = connect(url, { WebSocket: Slow, initialDelay: 1, maximumDelay: 10 })
    clients.push(carol)
    for (const each of [ada, bob]) each.actor("game").state("observeGameState").subscribe(() => {})
    const [game, board] = [carol.actor("game").state("observeGameState"), carol.actor("board").state("observeState")]
    for (const state of [game, board]) state.subscribe(() => {})
    const join = (each, name) => each.actor("game").call("join(player:)", [name])
    await join(ada, "ada")
    await carol.actor("game").call("advanceLevel()", [])

    const window = await chromium.open(`${link}`, { width: 1280, height: 860 })
    await window.until(isLive)
    const go = (hash) => window.evaluate(`location.hash = ${JSON.stringify(hash)}`)
    await go("#/actors/game")
    await window.shows(`"ada"`, ".tree")

    // The reason why the third is refused.
    await assert.rejects(carol.actor("game").call("cheat(score:)", [1000]))
    await go("#/connections")
    await window.shows("has no method 'cheat(score:)'")
    const third = await window.evaluate(`[...document.querySelectorAll("tbody tr")].find(({ innerText }) => innerText.includes("cheat")).cells[0].innerText`)
    await go(`#/log?connection=${third}`)
    await window.shows("call rejected")
    await window.shows("methodNotFound")

    // The client does not read: its output is queued until the connection is not writable.
    sockets[0]._socket.pause()
    await go("#/connections")
    const isStuck = `[...document.querySelectorAll("tbody tr")].some(({ cells, innerText }) => cells[0].innerText === "${third}" && innerText.includes("not writable"))`
    await ada.actor("board").call("resize(_:)", [200_000])
    for (let turn = 0; turn < 200 && !(await window.evaluate(isStuck)); turn++) await ada.actor("board").call("rewrite(stamp:)", [turn])
    await window.until(isStuck)

    await go("#/actors/game")
    await window.shows(`"ada"`, ".tree")
    const newest = () => ada.actor("game").state("observeGameState").getSnapshot().players.length
    const versionIs = (number) => `Number(document.querySelector(".line tbody tr").cells[0].innerText) >= ${number}`
    let made = await window.evaluate(`Number(/version (\\d+)/.exec(document.body.innerText)[1])`)
    for (; made < 45; made++) {
        const each = made % 2 ? bob : ada
        await join(each, `player ${made + 1}`)
    }
    await window.until(versionIs(45))
    assert.ok(newest() > 2)
    // The page shows the missing delivery while the client does not read.
    await window.shows("1 behind", ".line tbody tr")
    await window.type(".panel input[type=number]", "10")
    await window.enter()
    await window.shows("not received yet", ".detail")
    await window.shows(`connection ${third} (not writable)`, ".detail")
    const isSeen = `{
        const [row, list] = [".line tr[aria-selected]", ".line"].map((name) => document.querySelector(name).getBoundingClientRect())
        return row.top >= list.top && row.bottom <= list.bottom
    }`
    await window.until(`(() => ${isSeen})()`)
    await window.click(".step button:last-child")
    // The client reads again, and receives only the newest version.
    sockets[0]._socket.resume()
    const row = `[...document.querySelectorAll(".line tbody tr")].find(({ cells }) => cells[0].innerText === "42")`
    await window.until(`${row}.cells[4].innerText === "1"`)
    await window.evaluate(`${row}.click()`)
    await window.shows("Version 42", ".detail")
    const detail = await window.evaluate(`document.querySelector(".detail").innerText`)
    assert.match(detail, /Made by[^]*join\(player:\) \["player 42"\]/)
    assert.match(detail, new RegExp(`Not sent to connection ${third} `))
    assert.match(detail, /2\s+sent as a patch/)
    assert.match(detail, /add\s+\/players/)
    await window.shows(`"player 42"`, ".tree")
    await window.hides(`"player 43"`, ".tree")

    // The client loses its connection, and reconnects.
    sockets[0].terminate()
    await go(`#/log?connection=${third}`)
    await window.shows("connection closed")
    await window.shows("stream ended")
    await go("#/log")
    await window.until(`document.body.innerText.split("connection opened").length > 1`)
    assert.ok(sockets.length > 1)

    // The recorded calls become a test.
    await go("#/actors/game")
    await window.until(`document.querySelector(".tools button")`)
    await window.shows("player 42")
    await window.evaluate(`[...document.querySelectorAll("button")].find(({ innerText }) => innerText === "Copy as test").click()`)
    await window.shows("matches(", "pre.answer")
    await window.shows("actor.join(player: recorded(", "pre.answer")
    assert.deepEqual(window.thrown, [])
    await window.close()
})

test("the link of a restarted server is accepted in the tab of the old one, and its token leaves the URL", async () => {
    server?.kill("SIGTERM")
    const { link } = await serve()
    const window = await chromium.open(link)
    await window.until(isLive)
    // A URL that is not an encoded actor name.
    await window.evaluate(`location.hash = "#/actors/100%"`)
    await window.shows("100%", "h1")
    // The state changes there and moves the button.
    await window.evaluate(`location.hash = "#/"`)
    await window.shows("Methods with the most calls")
    await window.until(isLive)
    await window.click("#pause")
    await window.until(`document.querySelector("#pause").innerText === "Resume"`)
    await window.click("#pause")
    await window.until(`document.querySelector("#pause").innerText === "Pause"`)
    const ended = new Promise((resolve) => server.once("exit", resolve))
    server.kill("SIGKILL")
    await ended
    await window.shows("The server does not respond.")
    const { link: next } = await serveAt([new URL(link).port])
    assert.notEqual(next, link)
    await window.evaluate(`location.href = ${JSON.stringify(next)}`)
    await window.until(`${isLive} && location.hash === "#/"`)
    await window.shows("Methods with the most calls")
    const { entries } = await window.send("Page.getNavigationHistory")
    assert.doesNotMatch(entries.map(({ url }) => url).join(" "), /token=/)
    assert.deepEqual(window.thrown, [])
    await window.close()
})
