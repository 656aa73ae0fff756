/// The continuations that wait for the next change of a monitor's state.
@usableFromInline
package struct MonitorWaiters: Sendable {
    @usableFromInline typealias Continuation = UnsafeContinuation<Void, Never>

    /// Permission to wait for the change after the newest one at the creation of the ticket.
    @usableFromInline
    struct Ticket: Sendable {
        fileprivate let number: UInt64
        fileprivate let round: UInt64
    }

    /// Continuations removed from the list. The holder must call `resume()` once, with no lock held.
    @usableFromInline
    package struct Resumptions: Sendable {
        fileprivate let continuations: [UInt64: Continuation]

        @usableFromInline
        var isEmpty: Bool { continuations.isEmpty }

        @usableFromInline
        package func resume() {
            for continuation in continuations.values { continuation.resume() }
        }
    }

    private var waiting: [UInt64: Continuation] = [:]
    @usableFromInline
    init() {}

    private var nextNumber: UInt64 = 0
    /// The number of wake-ups so far. A ticket of an earlier round has missed a change and may not wait.
    private var round: UInt64 = 0

    var count: Int { waiting.count }

    @usableFromInline
    mutating func makeTicket() -> Ticket {
        nextNumber += 1
        return Ticket(number: nextNumber, round: round)
    }

    /// Stores the continuation. Returns false if a change came since the ticket was created: the caller then keeps the
    /// continuation and resumes it.
    @usableFromInline
    mutating func addContinuation(_ continuation: Continuation, _ ticket: Ticket) -> Bool {
        guard ticket.round == round else { return false }
        waiting[ticket.number] = continuation
        return true
    }

    @usableFromInline
    mutating func remove(_ ticket: Ticket) -> Continuation? {
        waiting.removeValue(forKey: ticket.number)
    }

    @usableFromInline
    mutating func takeAll() -> Resumptions {
        round += 1
        guard !waiting.isEmpty else { return Resumptions(continuations: [:]) }
        // Readers usually wait again, so the new table starts with their capacity instead of growing to it.
        var taken = [UInt64: Continuation](minimumCapacity: waiting.count)
        swap(&taken, &waiting)
        return Resumptions(continuations: taken)
    }
}
