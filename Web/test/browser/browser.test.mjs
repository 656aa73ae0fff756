// Two windows of Chromium with the start page and the examples. Needs TREBUCHET_BROWSER, its path, and TREBUCHET_PROGRAMS, the
// folder of the built programs.
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import test, { after, before } from "node:test"
import { fileURLToPath } from "node:url"
import { Chromium } from "./chromium.mjs"
import { Server } from "./server.mjs"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const program = (name) => join(process.env.TREBUCHET_PROGRAMS, name)
const folder = mkdtempSync(join(tmpdir(), "browser-"))
const servers = []
let chromium

function serve(name, args, place = folder) {
    const server = new Server(program(name), args, place)
    servers.push(server)
    return server.start()
}

function daemon(...options) {
    return serve("trebuchet", (port) => ["serve", "--examples", "--port", String(port), ...options])
}

function example(name, target) {
    return serve(target, (port) => [String(port), join(folder, `${name}.db`)], join(root, "Examples", name))
}

function live(...windows) {
    return Promise.all(windows.map((each) => each.shows("live", "[role=status]")))
}

// Removes all files, however the test ends.
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(1))
process.once("exit", () => {
    for (const server of servers) server.process?.kill("SIGKILL")
    chromium?.kill()
})

before(async () => (chromium = await Chromium.start(process.env.TREBUCHET_BROWSER)))
after(async () => {
    await Promise.all(servers.map((server) => server.kill()))
    await chromium?.close()
    rmSync(folder, { recursive: true })
})

test("values encoded by Swift are decoded and encoded again", async () => {
    const output = execFileSync("esbuild", [join(root, "Web/vectors/vectors.ts"), "--bundle", "--format=esm", "--log-level=warning"])
    const server = await daemon("--static", join(root, "Web"))
    const window = await chromium.open(`${server.url}/vectors/values.json`)
    await window.until(`location.pathname === "/vectors/values.json" && document.readyState === "complete"`)
    const [count, found] = await window.evaluate(`(async () => {
        const generated = URL.createObjectURL(new Blob([${JSON.stringify(String(output))}], { type: "text/javascript" }))
        const [{ Vectors }, { problems }, { exact }] =
            await Promise.all([generated, "/test/vectors.mjs", "/dist/trebuchet-exact.js"].map((name) => import(name)))
        const rows = await (await fetch("/vectors/values.json")).json()
        return [rows.length, problems(rows, Vectors, exact)]
    })()`)
    assert.ok(count > 50)
    assert.deepEqual(found, [])
    await window.close()
})

/** Two windows with a to-do list. */
async function list(url, picture) {
    const [one, other] = await Promise.all([chromium.open(url), chromium.open(url, { dark: true })])
    await live(one, other)
    await one.type("form input", "Milk")
    await one.enter()
    await Promise.all([one.shows("Milk", "ul"), other.shows("Milk", "ul")])
    await other.type("form input", "Bread")
    await other.click("form button")
    // Both events in one expression: a list that is rendered between the press and the release of the button loses the click.
    await Promise.all([one.shows("Bread", "ul"), other.shows("Bread", "ul")])
    await other.click("li input")
    await one.until(`document.querySelector("li.done input").checked`)
    await one.picture(`${picture}-light`)
    await other.picture(`${picture}-dark`)
    return [one, other]
}

test("the start page shows one list to all windows", async () => {
    const server = await daemon()
    const [one, other] = await list(server.url, "start")
    await one.click("li:nth-child(2) button")
    await other.hides("Bread", "ul")
    assert.deepEqual([one.thrown, other.thrown], [[], []])
    await Promise.all([one.close(), other.close()])
})

test("the list without a build step is a page of trebuchet serve", async () => {
    const server = await daemon("--static", join(root, "Examples/todos-web/public"))
    const windows = await list(server.url, "todos-static")
    for (const window of windows) {
        assert.deepEqual(window.thrown, [])
        await window.close()
    }
})

test("the list continues after the server was killed, and after a loss of the network", async () => {
    const server = await example("todos-web", "TodosWeb")
    const [one, other] = await list(server.url, "todos")
    await server.kill()
    await one.hides("live", "[role=status]")
    // The items stay visible, and an item that is added meanwhile is sent to the next server.
    await one.shows("Milk", "ul")
    await one.type("form input", "Written while no server ran")
    await one.enter()
    await other.hides("live", "[role=status]")
    await one.picture("todos-stale")
    await server.start()
    await live(one, other)
    await other.shows("Written while no server ran", "ul")
    assert.equal(await other.evaluate(`document.querySelectorAll("li").length`), 3)

    await other.setOffline(true)
    await other.shows("offline", "[role=status]")
    await one.type("form input", "Written while one was away")
    await one.enter()
    await one.shows("Written while one was away", "ul")
    await other.type("form input", "Written offline")
    await other.enter()
    await other.picture("todos-offline")
    await other.setOffline(false)
    await Promise.all([other.shows("Written while one was away", "ul"), one.shows("Written offline", "ul")])
    await live(other)
    assert.equal(await one.evaluate(`document.querySelectorAll("li").length`), 5)
    assert.deepEqual([one.thrown, other.thrown], [[], []])
    await Promise.all([one.close(), other.close()])
})

test("the chat shows its members, their messages and their pointers", async () => {
    const server = await example("chat-web", "ChatWeb")
    const [one, other] = await Promise.all([chromium.open(server.url), chromium.open(server.url, { dark: true })])
    await live(one, other)
    for (const [window, name] of [[one, "Ada"], [other, "Grace"]]) await window.type("input.name", name)
    for (const [window, name] of [[other, "Ada"], [one, "Grace"]]) await window.until(`document.querySelector("[title=${name}]")`)

    await one.type("input.text", "Does it fly?")
    await one.enter()
    await other.shows("Does it fly?", "ol")
    await other.type("input.text", "Two hundred metres. Look up there!")
    await other.enter()
    await one.shows("Look up there!", "ol")
    assert.equal(await one.evaluate(`document.querySelector("li.mine p").innerText`), "Does it fly?")

    // A pointer is shown to the other member at its position, and not to its owner.
    await other.move(360, 140)
    await one.until(`document.querySelector(".cursor").style.left.startsWith("50%") && document.querySelector(".cursor").style.top.startsWith("25%")`)
    await one.shows("Grace", ".cursor")
    assert.equal(await other.evaluate(`document.querySelector(".cursor")`), null)
    await one.move(500, 300)
    await other.shows("Ada", ".cursor")
    await one.picture("chat-light")
    await other.picture("chat-dark")

    // A refusal of the room is a typed value.
    await one.type("input.text", "x".repeat(501))
    await one.enter()
    await one.shows("At most 500 characters", "[role=alert]")
    await one.picture("chat-refused")

    await server.kill()
    await one.hides("live", "[role=status]")
    await one.type("input.text", "Is anybody there?")
    await one.enter()
    await server.start()
    await live(one, other)
    await other.shows("Is anybody there?", "ol")
    await one.hides("At most", "main")
    for (const window of [one, other]) await window.until(`document.querySelectorAll(".person").length === 2`)
    assert.equal(await other.evaluate(`document.querySelectorAll("ol p").length`), 3)

    await other.setOffline(true)
    await other.shows("offline", "[role=status]")
    await one.type("input.text", "Where are you?")
    await one.enter()
    await one.shows("Where are you?", "ol")
    await other.setOffline(false)
    await other.shows("Where are you?", "ol")
    await live(other)
    for (const window of [one, other]) await window.until(`document.querySelectorAll(".person").length === 2`)
    assert.deepEqual([one.thrown, other.thrown], [[], []])

    await other.close()
    await one.until(`document.querySelectorAll(".person").length === 1`)
    await one.close()
})
