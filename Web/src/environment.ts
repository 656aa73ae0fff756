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
    /** Calls `wake` when there is reason to look after the connection at once. Gives what ends it. */
    listen(wake: () => void): () => void
}

export function browser(): Environment {
    const world = globalThis as any
    return {
        now: () => Date.now(),
        random: () => Math.random(),
        setTimeout: (action, milliseconds) => setTimeout(action, milliseconds),
        clearTimeout: (timer) => clearTimeout(timer),
        isOnline: () => world.navigator?.onLine !== false,
        isVisible: () => world.document?.visibilityState !== "hidden",
        listen(wake) {
            const kinds: [any, string][] = [
                [world, "online"],
                [world, "offline"],
                [world, "pageshow"],
                [world.document, "visibilitychange"],
            ]
            for (const [target, kind] of kinds) target?.addEventListener?.(kind, wake)
            return () => {
                for (const [target, kind] of kinds) target?.removeEventListener?.(kind, wake)
            }
        },
    }
}
