/// Everything that one sent value causes, down to the last subscriber.
///
/// A value runs down plain operators at once. Where streams meet again (``Join``), the wave notes the place and comes
/// back to it when all that stands above has been done: so each meeting sees the wave complete, and fires once.
public final class Wave: @unchecked Sendable {
    // Unchecked: only the task that began the wave touches `due` and `handedOver`; it passes the wave along its own calls.
    private var due: [any Joining] = []
    private var handedOver: [@Sendable () async -> Void] = []
    /// The task that began the wave.
    let task: Int

    init(task: Int = CurrentTask.identity) { self.task = task }

    func fireLater(_ join: any Joining) { due.append(join) }

    /// Notes something that the sender waits for once it holds nothing any more.
    func settleLater(_ wait: @escaping @Sendable () async -> Void) { handedOver.append(wait) }

    /// Fires the joins that the wave has reached, upper ones first.
    @inline(__always)
    nonisolated(nonsending) func drain() async {
        if !due.isEmpty { await drainDue() }
    }

    private func drainDue() async {
        while let first = due.indices.min(by: { due[$0].height < due[$1].height }) {
            await due.remove(at: first).fire(self)
        }
    }

    /// Waits for what other waves do in this one's place.
    @inline(__always)
    nonisolated(nonsending) func settle() async {
        if !handedOver.isEmpty { for wait in handedOver { await wait() } }
    }
}

/// A place where streams meet, as a wave sees it.
protocol Joining: AnyObject, Sendable {
    /// More than that of each join above.
    var height: Int { get }
    func fire(_ wave: Wave) async
}
