// React hydrates a page that a server has rendered; values that the client has already received are not in that page.
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { createRequire } from "node:module"
import { test } from "node:test"
import { FakeEnvironment } from "./fakes.mjs"

process.env.NODE_ENV = "production"

// The parts of a page that React needs to hydrate one element with a text, and to replace it.
class Node extends EventTarget {
    nodeType = 1
    namespaceURI = "http://www.w3.org/1999/xhtml"
    attributes = []
    style = {}
    childNodes = []
    text = ""
    constructor(ownerDocument, name) {
        super()
        this.ownerDocument = ownerDocument
        this.nodeName = this.tagName = name.toUpperCase()
    }
    get firstChild() {
        return this.childNodes[0] ?? null
    }
    get lastChild() {
        return this.childNodes.at(-1) ?? null
    }
    get nextSibling() {
        const { childNodes } = this.parentNode
        return childNodes[childNodes.indexOf(this) + 1] ?? null
    }
    get textContent() {
        return this.text || this.childNodes.map((each) => each.textContent).join("")
    }
    set textContent(text) {
        this.childNodes = []
        this.text = text
    }
    getAttribute() {
        return null
    }
    hasAttribute() {
        return false
    }
    setAttribute() {}
    removeAttribute() {}
    appendChild(node) {
        node.parentNode = this
        this.childNodes.push(node)
        return node
    }
    insertBefore(node, place) {
        node.parentNode = this
        this.childNodes.splice(this.childNodes.indexOf(place), 0, node)
    }
    removeChild(node) {
        this.childNodes.splice(this.childNodes.indexOf(node), 1)
    }
}

class Document extends Node {
    nodeType = 9
    activeElement = null
    constructor() {
        super(null, "#document")
        this.documentElement = this.appendChild(this.createElement("html"))
        this.body = this.documentElement.appendChild(this.createElement("body"))
    }
    createElement(name) {
        return new Node(this, name)
    }
}

test("React: a page of a server is hydrated unchanged, and then shows the received values", async () => {
    const document = new Document()
    const window = Object.assign(new EventTarget(), { document, HTMLIFrameElement: class {} })
    Object.assign(document, { defaultView: window })
    Object.assign(globalThis, { window, document })
    const require = createRequire(import.meta.url)
    // Debian's React is CommonJS, which Node finds through NODE_PATH.
    execFileSync("esbuild", ["dist/react.js", "--format=cjs", "--outfile=.build/hydration.cjs", "--log-level=warning"])
    const { useActorState } = require("../.build/hydration.cjs")
    const { createElement } = require("react")
    const { renderToString } = require("react-dom/server")
    const { hydrateRoot } = require("react-dom/client")
    const pageOf = (client) => {
        const state = client.actor("counter").state()
        return function Page() {
            const { phase, failures } = useActorState(client.status)
            return createElement("p", null, `${phase} ${failures}: ${useActorState(state, "/count") ?? "nothing"}`)
        }
    }
    const html = renderToString(createElement(pageOf(new FakeEnvironment().connect())))
    assert.equal(html, "<p>connecting 0: nothing</p>")

    const fake = new FakeEnvironment()
    const client = await fake.live()
    const state = client.actor("counter").state()
    state.subscribe(() => {})
    const [{ callID }] = fake.socket.take("invocation")
    fake.socket.receive("streamStart", { streamID: "s", callID, epoch: "e", sequenceNumber: 0 })
    fake.socket.receive("streamData", { streamID: "s", sequenceNumber: 1, data: { count: 5 } })
    assert.equal(state.getSnapshot().count, 5)

    const root = document.body.appendChild(document.createElement("div"))
    const paragraph = root.appendChild(document.createElement("p"))
    paragraph.textContent = html.replace(/<\/?p>/g, "")
    const problems = []
    hydrateRoot(root, createElement(pageOf(client)), { onRecoverableError: (error) => problems.push(String(error)) })
    for (const end = Date.now() + 20_000; root.textContent !== "live 0: 5" && Date.now() < end; ) await new Promise(setImmediate)
    assert.deepEqual([root.textContent, problems], ["live 0: 5", []])
    assert.equal(root.firstChild, paragraph, "it is the element of the server")
})
