import { createRequire } from "node:module"

const require = createRequire(import.meta.url)

/** A package from Node's search path, or from the folder of Debian. */
export function debian(name) {
    try {
        return require(name)
    } catch {
        return require("/usr/share/nodejs/" + name)
    }
}

export const WebSocket = debian("ws")
