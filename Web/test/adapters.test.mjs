import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { createRequire } from "node:module"
import { test } from "node:test"
import { list, show, watch } from "../dist/dom.js"
import { readable } from "../dist/svelte.js"
import { actorType } from "../dist/trebuchet.js"
import { FakeEnvironment } from "./fakes.mjs"
import { debian } from "./sockets.mjs"

/** A store that the test sets. */
function storeOf(value) {
    const listeners = new Set()
    return {
        listeners,
        getSnapshot: () => value,
        subscribe(listener) {
            listeners.add(listener)
            return () => listeners.delete(listener)
        },
        set(next) {
            value = next
            for (const listener of [...listeners]) listener()
        },
    }
}

test("Svelte: a store calls its subscriber at once and at each change, until it unsubscribes", () => {
    const store = storeOf(1)
    const seen = []
    const end = readable(store).subscribe((value) => seen.push(value))
    store.set(2)
    end()
    store.set(3)
    assert.deepEqual(seen, [1, 2])
    assert.equal(store.listeners.size, 0)
})

// The parts of a page that the tests use.
class Node {
    parent = null
    children = []
    textContent = ""
    get firstChild() {
        return this.children[0] ?? null
    }
    get nextSibling() {
        const { children } = this.parent
        return children[children.indexOf(this) + 1] ?? null
    }
    insertBefore(node, place) {
        node.remove()
        this.children.splice(place ? this.children.indexOf(place) : this.children.length, 0, node)
        node.parent = this
    }
    remove() {
        if (this.parent) this.parent.children.splice(this.parent.children.indexOf(this), 1)
        this.parent = null
    }
}

test("pages: a value is shown as text", () => {
    const store = storeOf(undefined)
    const node = new Node()
    const end = show(store, node, (value) => `<${value}>`)
    assert.equal(node.textContent, "")
    store.set(5)
    assert.equal(node.textContent, "<5>")
    end()
    store.set(6)
    assert.equal(node.textContent, "<5>")
    const seen = []
    watch(store, (value) => seen.push(value))()
    assert.deepEqual(seen, [6])
})

test("pages: a list keeps its elements and follows the order of the values", () => {
    const store = storeOf(undefined)
    const parent = new Node()
    let made = 0
    let updated = 0
    const end = list(
        store,
        parent,
        ({ id }) => id,
        () => {
            made++
            return new Node()
        },
        (node, { text }) => {
            updated++
            node.textContent = text
        }
    )
    const texts = () => parent.children.map(({ textContent }) => textContent).join("")
    const items = Object.fromEntries([..."abcdef"].map((id) => [id, { id, text: id }]))
    const of = (ids) => [...ids].map((id) => items[id])
    for (const ids of ["abc", "abc", "cba", "bd", "", "fedcba", "acf", "bacdef"]) {
        const before = new Map(parent.children.map((node) => [node.textContent, node]))
        store.set(of(ids))
        assert.equal(texts(), ids)
        for (const node of parent.children) assert.equal(before.get(node.textContent) ?? node, node)
    }
    const counts = [made, updated]
    store.set([...of("bacde"), { id: "f", text: "F" }])
    assert.equal(texts(), "bacdeF")
    assert.deepEqual([made, updated], [counts[0], counts[1] + 1])
    // Two values with one key share one element.
    store.set(of("aab"))
    assert.equal(texts(), "ab")
    store.set(undefined)
    assert.equal(texts(), "")
    end()
    assert.equal(store.listeners.size, 0)
})

test("pages: a list does not move unchanged elements, because that would lose the focus", () => {
    const of = (ids) => [...ids].map((id) => ({ id }))
    const [store, parent] = [storeOf(of("abcdef")), new Node()]
    list(store, parent, ({ id }) => id, ({ id }) => Object.assign(new Node(), { textContent: id }))
    const moved = []
    parent.insertBefore = function (node, place) {
        moved.push(node.textContent)
        Node.prototype.insertBefore.call(this, node, place)
    }
    for (const ids of ["bcdef", "bdef", "bdxe", "ybe"]) store.set(of(ids))
    assert.equal(parent.children.map(({ textContent }) => textContent).join(""), "ybe")
    assert.equal(moved.join(""), "xy")
})

/** Calls `body` with the store of a list, its texts, and the reported uncaught errors. */
function withList(make, update, body) {
    const [told, before] = [[], globalThis.reportError]
    globalThis.reportError = (error) => told.push(error)
    const [store, parent] = [storeOf([{ id: 1, text: "a" }, { id: 2, text: "b" }]), new Node()]
    try {
        const key = ({ id }) => id ?? assert.fail("no key")
        list(store, parent, key, make, (node, value) => update(node, value, store))
        body(store, () => parent.children.map(({ textContent }) => textContent).join(), told)
    } finally {
        globalThis.reportError = before
    }
}

test("pages: a list continues after an error for one of its values", () => {
    let isBad = true
    const make = ({ id }) => {
        if (isBad && id === 3) throw new Error("made")
        return new Node()
    }
    const update = (node, { id, text }) => {
        if (isBad && id === 2) throw new Error("updated")
        node.textContent = text
    }
    withList(make, update, (store, texts, told) => {
        const first = store.getSnapshot()
        store.set([{ id: 1, text: "A" }, { id: 2, text: "B" }, { id: 3, text: "C" }, { id: 4, text: "D" }])
        assert.equal(texts().replace("undefined", ""), "A,,D")
        assert.deepEqual(told.map(({ message }) => message), ["updated", "updated", "made"])
        isBad = false
        store.set([{ id: 1, text: "A" }, { id: 2, text: "B" }, { id: 3, text: "C" }, { id: 4, text: "D" }])
        assert.equal(texts(), "A,B,C,D")
        store.set([...first.slice(0, 1), { text: "X" }, ...first.slice(1)])
        assert.equal(texts(), "a,b")
        assert.equal(told[3].message, "no key")
    })
})

test("pages: a list whose update changes the store shows the newest value", () => {
    const update = (node, { id, text }, store) => {
        node.textContent = text
        if (text === "a2") store.set([{ id: 2, text: "b3" }, { id: 1, text: "a3" }, { id: 3, text: "c3" }])
    }
    withList(() => new Node(), update, (store, texts) => {
        store.set([{ id: 1, text: "a2" }, { id: 2, text: "b2" }])
        assert.equal(texts(), "b3,a3,c3")
        store.set([])
        assert.equal(texts(), "")
    })
})

test("a listener that throws in its first call is not called again, because no caller could remove it", () => {
    const store = storeOf(1)
    const fail = () => {
        throw new Error("at once")
    }
    assert.throws(() => watch(store, fail), /at once/)
    assert.throws(() => readable(store).subscribe(fail), /at once/)
    assert.equal(store.listeners.size, 0)
})

// A stub of React's hooks for one component without other effects. It tests the contract of `useSyncExternalStore`,
// not React itself.
function rendererOf(React, component) {
    const internals = React.__SECRET_INTERNALS_DO_NOT_USE_OR_YOU_WILL_BE_FIRED
    const slots = []
    let index = 0
    let renders = 0
    const dispatcher = {
        useMemo(make, dependencies) {
            const slot = (slots[index++] ??= {})
            if (!slot.dependencies?.every((each, place) => Object.is(each, dependencies[place]))) {
                Object.assign(slot, { value: make(), dependencies })
            }
            return slot.value
        },
        useSyncExternalStore(subscribe, getSnapshot) {
            const slot = (slots[index++] ??= {})
            slot.value = getSnapshot()
            assert.ok(Object.is(slot.value, getSnapshot()), "the snapshot is the same until it changes")
            if (slot.subscribe !== subscribe) {
                slot.end?.()
                slot.subscribe = subscribe
                slot.end = subscribe(() => {
                    if (!Object.is(slot.value, getSnapshot())) render()
                })
            }
            return slot.value
        },
    }
    const result = {
        get renders() {
            return renders
        },
        unmount: () => slots.forEach((slot) => slot.end?.()),
    }
    const render = () => {
        index = 0
        renders++
        const before = internals.ReactCurrentDispatcher.current
        internals.ReactCurrentDispatcher.current = dispatcher
        try {
            result.value = component()
        } finally {
            internals.ReactCurrentDispatcher.current = before
        }
    }
    result.render = render
    render()
    return result
}

test("React: a component has the state and renders again when the state, or its part, changes", async () => {
    const React = debian("react")
    const require = createRequire(import.meta.url)
    // Debian's React is CommonJS, which Node finds through NODE_PATH.
    execFileSync("esbuild", ["dist/react.js", "--format=cjs", "--outfile=.build/react.cjs", "--log-level=warning"])
    const { useActor, useActorState } = require("../.build/react.cjs")
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const Board = actorType({ name: "Board", states: { state: { target: "observeState" } } })
    const component = rendererOf(React, () => {
        const board = useActor(client, Board, "b")
        const { phase } = useActorState(client.status)
        return { board, phase, whole: useActorState(board.state), part: useActorState(board.state, "/list") }
    })
    const [payload] = fake.socket.take("invocation")
    fake.socket.receive("streamStart", { streamID: "s", callID: payload.callID, epoch: "e" })
    const { board } = component.value
    assert.deepEqual([component.value.phase, component.value.whole, component.renders], ["live", undefined, 1])
    fake.socket.receive("streamData", { streamID: "s", sequenceNumber: 1, data: { list: [1], n: 1 } })
    assert.deepEqual(component.value.part, [1])
    assert.equal(component.value.board, board)
    const { renders } = component
    fake.socket.receive("streamData", { streamID: "s", sequenceNumber: 2, data: { list: [1], n: 1 } })
    component.render()
    assert.equal(component.renders, renders + 1)
    assert.deepEqual(fake.socket.take("invocation"), [])
    component.unmount()
    await fake.pass(100)
    assert.equal(fake.socket.take("streamEnd").length, 1)
})
