// Tabs that write, publish, lose their connections and are closed, while the program is killed. SEEDS (1-3) selects the random numbers.
import assert from "node:assert/strict"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { services } from "../dist/trebuchet-services.js"
import { Daemon, tool, until } from "./daemon.mjs"
import { MemoryLocks, MemoryPending, MemoryStorage } from "./services-fakes.mjs"
import { WebSocket } from "./sockets.mjs"

const limits = { skip: tool ? false : "TREBUCHET_TOOL is not set", timeout: 60_000 }
const [first, last] = (process.env.SEEDS ?? "1-3").split("-").map(Number)

/** mulberry32 */
function randomOf(seed) {
    return (limit) => {
        seed = (seed + 0x6d2b79f5) | 0
        let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
        t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
        return ((t ^ (t >>> 14)) >>> 0) % limit
    }
}

// Tabs with one session renew it one after the other.
Object.defineProperty(globalThis, "navigator", { value: { locks: new MemoryLocks() } })

const turn = () => new Promise(setImmediate)

for (let seed = first; seed <= (last ?? first); seed++) {
    test(`nothing is lost, duplicated or reordered, seed ${seed}`, limits, async () => {
        const random = randomOf(seed)
        const folder = await mkdtemp(join(tmpdir(), "trebuchet-web-"))
        const data = ["--data", join(folder, "state.db")]
        let daemon = await Daemon.start(data)
        // Two browsers with two tabs each.
        const browsers = [0, 1].map((key) => ({ key: `${seed} ${key}`, storage: new MemoryStorage(), pending: new MemoryPending() }))
        let count = 0
        const refused = []
        const open = (browser) => {
            const app = services(daemon.url, {
                WebSocket, initialDelay: 5, maximumDelay: 100, storage: browser.storage, storageKey: browser.key, pending: browser.pending.tab(),
                refused: (write) => refused.push(write),
            })
            const tab = { browser, app, name: "tab" + ++count, written: 0, todos: app.collection("todos") }
            tab.query = tab.todos.query({ order: "id" })
            tab.query.subscribe(() => {
                for (const { id, list } of tab.query.getSnapshot() ?? []) {
                    assert.ok(!list || new Set(list).size === list.length, `${id} has something twice`)
                }
            })
            return tab
        }
        const tabs = [open(browsers[0])]
        const written = new Map()
        let made = 0
        try {
            await tabs[0].todos.create({ id: "all", count: 0, list: [] })
            await tabs[0].app.auth.signInAsGuest()
            tabs.push(open(browsers[1]))
            await tabs[1].app.auth.signInAsGuest()
            tabs.push(...browsers.map(open))
            await Promise.all(tabs.map(({ query }) => until(query, (items) => items?.length)))
            for (let step = 0; step < 120; step++) {
                const place = random(tabs.length)
                const tab = tabs[place]
                const kind = random(40)
                if (kind < 30) {
                    for (let writes = random(8); writes >= 0; writes--) {
                        made++
                        tab.todos.transaction((todos) => {
                            todos.increment("all", "count")
                            todos.link("all", "list", `${tab.name}:${tab.written}`)
                        })
                        written.set(tab.name, ++tab.written)
                    }
                } else if (kind < 34) tab.app.client.reconnect()
                else if (kind < 37) {
                    // An unpersisted write would be lost with the tab.
                    await turn()
                    await turn()
                    tab.app.close()
                    tabs[place] = open(tab.browser)
                } else {
                    await daemon.end()
                    if (random(2)) await new Promise((resolve) => setTimeout(resolve, random(50)))
                    daemon = await Daemon.start(data, daemon.port)
                }
                if (random(3)) for (let turns = random(30); turns > 0; turns--) await turn()
            }
            // Tabs adopt the writes of closed tabs when they connect.
            for (const { browser } of tabs) {
                while (browser.pending.writes.size) {
                    for (const { app } of tabs) {
                        await until(app.client.status, ({ phase }) => phase === "live")
                        app.client.reconnect()
                    }
                    await new Promise((resolve) => setTimeout(resolve, 50))
                }
            }
            assert.deepEqual(refused.map(({ error }) => error.message), [])
            const [{ fields }] = (await tabs[0].todos.get()).documents
            assert.equal(fields.count, made)
            for (const [name, number] of written) {
                const own = fields.list.filter((each) => each.startsWith(name + ":"))
                assert.deepEqual(own, Array.from({ length: number }, (_, index) => `${name}:${index}`))
            }
            for (const { query } of tabs) {
                await until(query.status, ({ phase, pending }) => phase === "live" && !pending)
                await until(query, ([{ count }]) => count === made)
                assert.deepEqual(query.getSnapshot(), [fields])
            }
        } finally {
            for (const { app } of tabs) app.close()
            await daemon.end()
            await rm(folder, { recursive: true })
        }
    })
}
