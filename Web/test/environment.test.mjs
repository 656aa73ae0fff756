import assert from "node:assert/strict"
import { test } from "node:test"
import { browser } from "../.build/environment.js"

test("outside of a page the environment is visible and online, and has no page events", () => {
    const environment = browser()
    assert.equal(environment.isVisible(), true)
    assert.equal(environment.isOnline(), true)
    environment.listen(() => {})()
    assert.ok(Math.abs(environment.now() - Date.now()) < 1000)
    assert.ok(environment.random() < 1)
})

test("in a page, events of the network, of resumption and of visibility arrive", () => {
    const page = new EventTarget()
    const before = Object.getOwnPropertyDescriptor(globalThis, "navigator")
    globalThis.addEventListener = page.addEventListener.bind(page)
    globalThis.removeEventListener = page.removeEventListener.bind(page)
    globalThis.document = { visibilityState: "hidden" }
    Object.defineProperty(globalThis, "navigator", { value: { onLine: false }, configurable: true })
    try {
        const environment = browser()
        assert.equal(environment.isVisible(), false)
        assert.equal(environment.isOnline(), false)
        document.visibilityState = "visible"
        assert.equal(environment.isVisible(), true)
        let woken = 0
        const end = environment.listen(() => woken++)
        const kinds = ["online", "offline", "pagehide", "pageshow", "freeze", "resume", "visibilitychange", "click"]
        for (const kind of kinds) page.dispatchEvent(new Event(kind))
        assert.equal(woken, 7)
        end()
        for (const kind of kinds) page.dispatchEvent(new Event(kind))
        assert.equal(woken, 7)
    } finally {
        for (const name of ["addEventListener", "removeEventListener", "document"]) delete globalThis[name]
        if (before) Object.defineProperty(globalThis, "navigator", before)
        else delete globalThis.navigator
    }
})
