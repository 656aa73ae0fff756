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
    listen(wake: (event: PageEvent) => void): () => void
}

/** The phase in which the window receives events of the document that do not bubble. */
export const capture = { capture: true }

/** Whether the event suspends the page, which may be resumed later. */
export const isSuspension = ({ type, persisted }: PageEvent): boolean => type === "freeze" || (type === "pagehide" && !!persisted)

export interface PageEvent {
    readonly type: string
    /** Of `pagehide`: whether the page goes to the back/forward cache. */
    readonly persisted?: boolean
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
            const kinds = ["online", "offline", "pagehide", "pageshow", "freeze", "resume", "visibilitychange"]
            for (const kind of kinds) world.addEventListener?.(kind, wake, capture)
            return () => {
                for (const kind of kinds) world.removeEventListener?.(kind, wake, capture)
            }
        },
    }
}
