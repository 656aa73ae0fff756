// Controls Chromium over its DevTools protocol (chromedevtools.github.io/devtools-protocol).
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { WebSocket } from "../sockets.mjs"

/** Long, because the machine may be busy: a test continues as soon as the expected content is shown. */
const patience = 30_000

export class Chromium {
    #number = 0
    #calls = new Map()
    #windows = new Map()

    static async start(path) {
        const chromium = new Chromium()
        chromium.folder = mkdtempSync(join(tmpdir(), "chromium-"))
        const options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
            "--disable-backgrounding-occluded-windows", "--disable-component-update", "--disable-extensions", "--mute-audio",
            "--remote-debugging-port=0", `--user-data-dir=${chromium.folder}`, "about:blank",
        ]
        // A separate process group, because the browser has many processes, which end together.
        chromium.process = spawn(path, options, { stdio: ["ignore", "ignore", "pipe"], detached: true })
        chromium.ended = new Promise((resolve) => chromium.process.once("exit", resolve))
        const url = await new Promise((resolve, reject) => {
            let output = ""
            chromium.process.stderr.on("data", (text) => {
                output += text
                const found = /DevTools listening on (ws:\S+)/.exec(output)
                if (found) resolve(found[1])
            })
            chromium.process.once("error", reject)
            chromium.ended.then(() => reject(new Error(`${path} ended: ${output}`)))
        })
        chromium.socket = new WebSocket(url, { perMessageDeflate: false })
        chromium.socket.on("message", (text) => chromium.#received(JSON.parse(text)))
        await new Promise((resolve, reject) => chromium.socket.once("open", resolve).once("error", reject))
        return chromium
    }

    #received({ id, result, error, method, params, sessionId }) {
        if (id === undefined) return this.#windows.get(sessionId)?.happened(method, params)
        const call = this.#calls.get(id)
        this.#calls.delete(id)
        if (error) call.reject(new Error(`${call.method}: ${error.message}`))
        else call.resolve(result)
    }

    send(method, params = {}, sessionId) {
        const id = ++this.#number
        return new Promise((resolve, reject) => {
            this.#calls.set(id, { method, resolve, reject })
            this.socket.send(JSON.stringify({ id, method, params, sessionId }))
        })
    }

    /** A window without shared storage and cookies, or tabs of one window that share both. */
    async open(url, { width = 720, height = 560, dark = false, beside } = {}) {
        const { browserContextId } = beside?.context ?? (await this.send("Target.createBrowserContext"))
        const { targetId } = await this.send("Target.createTarget", { url: "about:blank", browserContextId })
        const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true })
        const window = new Window(this, targetId, sessionId)
        window.context = { browserContextId }
        this.#windows.set(sessionId, window)
        for (const domain of ["Page", "Runtime", "Network"]) await window.send(`${domain}.enable`)
        await window.send("Emulation.setFocusEmulationEnabled", { enabled: true })
        await window.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false })
        const scheme = { name: "prefers-color-scheme", value: dark ? "dark" : "light" }
        await window.send("Emulation.setEmulatedMedia", { features: [scheme] })
        await window.send("Page.navigate", { url })
        return window
    }

    /** Kills the browser, and leaves its files. */
    kill() {
        if (this.process.exitCode === null && this.process.signalCode === null) process.kill(-this.process.pid, "SIGKILL")
    }

    async close() {
        this.kill()
        await this.ended
        // Its processes may still write while they end.
        rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    }
}

export class Window {
    /** The uncaught errors of the page. */
    thrown = []

    constructor(chromium, target, session) {
        Object.assign(this, { chromium, target, session })
    }

    send(method, params) {
        return this.chromium.send(method, params, this.session)
    }

    happened(method, { exceptionDetails: details } = {}) {
        if (method === "Runtime.exceptionThrown") this.thrown.push(details.exception?.description ?? details.text)
    }

    /** The value of an expression, or of its promise. */
    async evaluate(expression) {
        const options = { expression, awaitPromise: true, returnByValue: true, userGesture: true }
        const { result, exceptionDetails: details } = await this.send("Runtime.evaluate", options)
        if (details) throw new Error(`${expression}: ${details.exception?.description ?? details.text}`)
        return result.value
    }

    /** Waits until an expression about the page is true. */
    async until(expression) {
        const end = Date.now() + patience
        const wait = `new Promise((resolve) => {
            const end = Date.now() + ${patience}
            const look = () => {
                let isSo = false
                try { isSo = ${expression} } catch {}
                if (isSo || Date.now() > end) resolve(Boolean(isSo))
                else setTimeout(look, 20)
            }
            look()
        })`
        for (;;) {
            try {
                if (await this.evaluate(wait)) return
            } catch (error) {
                // The page was left meanwhile: the next one is queried.
                if (!/context|navigated/i.test(error.message) || Date.now() > end) throw error
                continue
            }
            const shown = await this.evaluate("document.body?.innerText")
            throw new Error(`not so within ${patience / 1000} s: ${expression}\nshown: ${shown}\nthrown: ${this.thrown}`)
        }
    }

    /** Waits until a text is shown, or is no longer shown. */
    shows(text, selector = "body") {
        return this.until(`document.querySelector(${JSON.stringify(selector)}).innerText.includes(${JSON.stringify(text)})`)
    }

    hides(text, selector = "body") {
        return this.until(`!document.querySelector(${JSON.stringify(selector)}).innerText.includes(${JSON.stringify(text)})`)
    }

    /** Types into the focused field with key events. */
    async type(selector, text) {
        await this.until(`document.querySelector(${JSON.stringify(selector)})`)
        await this.evaluate(`{ const field = document.querySelector(${JSON.stringify(selector)}); field.focus(); field.select() }`)
        await this.send("Input.insertText", { text })
    }

    async enter() {
        const key = { key: "Enter", code: "Enter", windowsVirtualKeyCode: 13, text: "\r" }
        await this.send("Input.dispatchKeyEvent", { type: "keyDown", ...key })
        await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...key })
    }

    async move(x, y) {
        await this.send("Input.dispatchMouseEvent", { type: "mouseMoved", x, y })
    }

    /** Clicks in the middle of an element. */
    async click(selector) {
        await this.until(`document.querySelector(${JSON.stringify(selector)})`)
        const { x, y } = await this.evaluate(`(() => {
            const box = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect()
            return { x: box.x + box.width / 2, y: box.y + box.height / 2 }
        })()`)
        const button = { x, y, button: "left", clickCount: 1 }
        await this.send("Input.dispatchMouseEvent", { type: "mousePressed", ...button })
        await this.send("Input.dispatchMouseEvent", { type: "mouseReleased", ...button })
    }

    /** Disconnects the page from the network, or reconnects it. */
    async setOffline(offline) {
        const none = { latency: 0, downloadThroughput: -1, uploadThroughput: -1 }
        await this.send("Network.emulateNetworkConditions", { offline, ...none })
    }

    /** Writes a screenshot, if a folder for them is set. */
    async picture(name) {
        const folder = process.env.TREBUCHET_PICTURES
        if (!folder) return
        const { data } = await this.send("Page.captureScreenshot", { format: "png" })
        writeFileSync(join(folder, `${name}.png`), Buffer.from(data, "base64"))
    }

    close() {
        return this.chromium.send("Target.closeTarget", { targetId: this.target })
    }
}
