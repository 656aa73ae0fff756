import { createRequire } from "node:module"

const require = createRequire(import.meta.url)

/** A package of Node's, where it is, or where Debian has it. */
export function debian(name) {
    try {
        return require(name)
    } catch {
        return require("/usr/share/nodejs/" + name)
    }
}

export const WebSocket = debian("ws")
