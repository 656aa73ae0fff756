internal import Platform
internal import Synchronization
internal import TrebuchetActors

/// What a connection of another node's is called here. As long as somebody has this, it is found by what it is called there: its line
/// has it, and so has what is kept of its calls.
final class CarriedName: Sendable {
    let name: ConnectionName
    /// At its own node.
    let session: String
    private let names: CarriedNames

    fileprivate init(_ name: ConnectionName, _ session: String, _ names: CarriedNames) {
        (self.name, self.session, self.names) = (name, session, names)
    }

    deinit { names.drop(session) }

    /// Nothing is kept any more of its calls, of which those up to this number may have run.
    func wasForgotten(upTo call: UInt64, of party: Party) { names.forget(session, upTo: call, of: party) }
}

/// The names of connections of other nodes, and those of which nothing is kept any more.
final class CarriedNames: Sendable {
    private struct Entry {
        weak var name: CarriedName?
    }

    private struct State {
        var entries: [ByteText: Entry] = [:]
        var forgotten = ForgottenNames()
    }

    private let state = Mutex(State())

    /// How many somebody has.
    var count: Int { state.withLock { $0.entries.count } }

    /// By what it is called at its own node; nil when nobody has it.
    func name(_ session: String) -> CarriedName? { state.withLock { $0.entries[ByteText(session)]?.name } }

    /// The same one again while somebody has it; else one that is called what `new` says.
    func carry(_ session: String, as new: () -> ConnectionName) -> CarriedName {
        state.withLock { state in
            if let name = state.entries[ByteText(session)]?.name { return name }
            let name = CarriedName(new(), session, self)
            state.entries[ByteText(session)] = Entry(name: name)
            return name
        }
    }

    /// Whether a call of a connection of another node's may have run here, though nothing is kept of it any more.
    ///
    /// - Parameter party: who asks.
    func mayHaveRun(_ call: UInt64, over session: SessionName, of party: Party) -> Bool {
        state.withLock { $0.forgotten.contains(call, over: session, of: party) }
    }

    fileprivate func forget(_ session: String, upTo call: UInt64, of party: Party) {
        guard let session = SessionName(session) else { return }
        state.withLock { $0.forgotten.add(session, upTo: call, of: party) }
    }

    fileprivate func drop(_ session: String) {
        let other: CarriedName? = state.withLock { state in
            // Another one may have taken its place while this one went.
            if let other = state.entries[ByteText(session)]?.name { return other }
            state.entries[ByteText(session)] = nil
            return nil
        }
        // Held until here: freed within the lock, it would come here again.
        withExtendedLifetime(other) {}
    }
}
