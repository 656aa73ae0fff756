internal import Platform
internal import Synchronization
internal import TrebuchetActors

/// The local name of a connection of another server. While a reference exists, it is found by its name at that server: the link
/// and the entries of its calls hold references.
package final class RemoteSessionAlias: Sendable {
    package let name: CallSessionID
    /// The name at its own server.
    package let session: String
    private let names: RemoteSessionAliasTable
    /// True if the name has arrived from its own node, and not from a client only.
    fileprivate let isVerified = Atomic<Bool>(false)

    fileprivate init(_ name: CallSessionID, _ session: String, _ names: RemoteSessionAliasTable) {
        (self.name, self.session, self.names) = (name, session, names)
    }

    deinit { names.drop(session) }

    /// Records that the entries of its calls have been removed; calls up to this number may have run.
    func wasForgotten(upTo call: UInt64, of scope: QuotaScope) {
        names.recordForgotten(session, upTo: call, of: scope, isVerified: isVerified.load(ordering: .relaxed))
    }
}

/// The names of connections of other servers, and of those whose entries have been removed.
final class RemoteSessionAliasTable: Sendable {
    private struct Entry {
        weak var name: RemoteSessionAlias?
    }

    private struct State {
        var entries: [ByteText: Entry] = [:]
        var forgotten = ForgottenCallWatermarks()
    }

    private let state = Mutex(State())

    /// The number of names in use.
    var count: Int { state.withLock { $0.entries.count } }

    /// Returns the name in use with this name at its own server; nil if there is none.
    func name(_ session: String) -> RemoteSessionAlias? { state.withLock { $0.entries[ByteText(session)]?.name } }

    /// Returns the name in use for a connection of another server, or creates one with the name that `new` returns.
    ///
    /// - Parameter isVerified: whether the name arrives from its own server.
    func carry(_ session: String, isVerified: Bool, as new: () -> CallSessionID) -> RemoteSessionAlias {
        let name = state.withLock { state in
            if let name = state.entries[ByteText(session)]?.name { return name }
            let name = RemoteSessionAlias(new(), session, self)
            state.entries[ByteText(session)] = Entry(name: name)
            return name
        }
        if isVerified { name.isVerified.store(true, ordering: .relaxed) }
        return name
    }

    /// Returns whether a call of another server's connection may have run here although its entry was removed.
    ///
    /// - Parameter scope: The quota scope of the caller.
    func mayHaveRun(_ call: UInt64, over session: QualifiedCallSessionID, of scope: QuotaScope) -> Bool {
        state.withLock { $0.forgotten.mayHaveRun(call, over: session, of: scope) }
    }

    fileprivate func recordForgotten(
        _ session: String, upTo call: UInt64, of scope: QuotaScope, isVerified: Bool
    ) {
        // A session of an idempotency key has one call, which may be executed again after the retention time.
        guard let session = QualifiedCallSessionID(session), session.instance != IdempotencyKey.instance else { return }
        state.withLock { $0.forgotten.insert(session, upTo: call, of: scope, isVerified: isVerified) }
    }

    fileprivate func drop(_ session: String) {
        let other: RemoteSessionAlias? = state.withLock { state in
            // Another object may have taken its place while this one was released.
            if let other = state.entries[ByteText(session)]?.name { return other }
            state.entries[ByteText(session)] = nil
            return nil
        }
        // Retained until here: a release within the lock would enter this function again.
        withExtendedLifetime(other) {}
    }
}
