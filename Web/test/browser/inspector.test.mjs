// The inspector in Chromium: two clients play, a third goes wrong, and the page alone says who has done what.
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

/** A server, where clients reach it, and the link to its inspector. */
async function serve(...options) {
    server = spawn(tool, ["serve", "--port", "0", "--inspector", ...options], { stdio: ["ignore", "pipe", "ignore"] })
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

test("from the page alone one finds which calls made a version, who was sent it, and why somebody is refused", async () => {
    const { url, link } = await serve("--inspector-write")
    const [ada, bob, wrong] = [client(url), client(url), client(url)]
    const seen = [ada, bob].map((each) => {
        const state = each.actor("game").state("observeGameState")
        state.subscribe(() => {})
        return state
    })
    await ada.actor("game").call("join(player:)", ["ada"])
    // So that differences are less than the whole.
    await ada.actor("game").call("join(player:)", ["eve".repeat(100)])
    const window = await chromium.open(link, { width: 1280, height: 860 })
    await window.until(isLive)
    // The address has the token no more, and a reload asks for none.
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
    // What somebody has put into a state is a text.
    await window.shows(`"<b>bob</b>"`, ".tree")
    assert.equal(await window.evaluate(`document.querySelectorAll(".tree b").length`), 0)
    await ada.actor("game").call("advanceLevel()", [])
    await window.shows("advanceLevel()", ".line")
    const text = () => window.evaluate(`document.querySelector(".detail").innerText`)
    await window.shows("advanceLevel()", ".detail")
    assert.match(await text(), /2\s+sent the difference/)
    assert.match(await text(), /replace\s+\/level/)
    await window.shows("level:\n2", ".tree")

    // A step back: the state as it was, and who had made it so.
    await window.click(".step button")
    await window.shows("join(player:)", ".detail")
    await window.shows("level:\n1", ".tree")
    await window.shows(`["<b>bob</b>"]`, ".detail")
    await window.click(".step button:last-child")
    await window.shows("level:\n2", ".tree")

    // A call from the page, as somebody else.
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
    // Each connection that is cut comes back by itself.
    await window.evaluate(`location.hash = "#/connections"`)
    await window.until(`document.querySelectorAll("button[data-cut]").length >= 3`)
    const first = await window.evaluate(`document.querySelector("button[data-cut]").dataset.cut`)
    await window.click(`button[data-cut="${first}"]`)
    await window.until(`!document.querySelector('button[data-cut="${first}"]')`)
    assert.deepEqual(seen.map((state) => state.getSnapshot().level), [2, 2])
    assert.deepEqual(window.thrown, [])

    // Another window has no token, and a wrong one is refused.
    const other = await chromium.open(link.replace(/#.*/, ""))
    await other.shows("Which server?")
    await other.type("form.link input", "wrong")
    await other.enter()
    await other.shows("The token is not the one of this server.")
    await other.type("form.link input", link)
    await other.enter()
    await other.until(isLive)
    assert.deepEqual(other.thrown, [])
    await Promise.all([window.close(), other.close()])
    const { stdout } = await run(tool, ["inspect", "actor", "game", "--url", link])
    assert.match(stdout, /game/)
})
