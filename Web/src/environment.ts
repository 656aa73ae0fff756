/** What the client takes of the world; tests hand in another one. */
export interface Environment {
    now(): number
    /** In `0..<1`. */
    random(): number
    setTimeout(action: () => void, milliseconds: number): any
    clearTimeout(timer: any): void
    /** False when the system says that there is no network. */
    isOnline(): boolean
    isVisible(): boolean
    /** Calls `wake` when there is reason to look after the connection at once, with the event that it is. Gives what ends it. */
    listen(wake: (event: { type: string }) => void): () => void
}

export function browser(): Environment {
    const world = globalThis as any
    return {
        now: Date.now,
        random: Math.random,
        setTimeout: (action, milliseconds) => setTimeout(action, milliseconds),
        clearTimeout: (timer) => clearTimeout(timer),
        isOnline: () => world.navigator?.onLine !== false,
        isVisible: () => world.document?.visibilityState !== "hidden",
        listen(wake) {
            // What happens to the document is heard at the window, too.
            const kinds = ["online", "offline", "pageshow", "visibilitychange"]
            for (const kind of kinds) world.addEventListener?.(kind, wake)
            return () => {
                for (const kind of kinds) world.removeEventListener?.(kind, wake)
            }
        },
    }
}
