/**
 * Tracks the last write of the server that a result reflects. A result has the revision of the last write that changed it. The server does
 * not send it again for later writes that leave it unchanged. Tickets and write responses therefore state that a result at one revision
 * reflects all writes up to another. Pure.
 */
export class ResultPosition {
    private _shown = -1
    private _confirmed = -1
    private _expected: [shown: number, through: number] | undefined

    /** The last reflected write; -1 before the first result. */
    get _seen(): number {
        return this._shown < 0 ? -1 : Math.max(this._shown, this._confirmed)
    }

    /** Resets the position for the results of another view, possibly at a restarted server. */
    _begin(): void {
        this._confirmed = -1
        this._expected = undefined
    }

    _shows(revision: number): void {
        this._shown = revision
        if (!this._expected || this._expected[0] > revision) return
        this._confirmed = Math.max(this._confirmed, this._expected[1])
        this._expected = undefined
    }

    _confirm(shown: number, through: number): void {
        const { _expected: expected } = this
        if (this._shown >= shown) this._confirmed = Math.max(this._confirmed, through)
        else if (!expected || expected[0] <= shown) {
            this._expected = [shown, expected?.[0] === shown ? Math.max(through, expected[1]) : through]
        }
    }
}
