internal import Bytes
internal import Synchronization
internal import TrebuchetWire

/// A source whose state is kept in a store. All in the actor's isolation, which is its reactor.
protocol PersistedSource: AnyStateSource {
    /// Who writes the state; nil for nobody.
    func persist(by states: PersistedStates?)
    /// Changes that were made before there was anybody to write them are written now.
    func keepEarlierChanges()
    /// The value in JSON, with what its observers are sent made ready behind the write; nil when it has not changed since
    /// the last capture.
    func capture() throws -> [UInt8]?
    /// What was captured was not kept.
    func captureAgain()
}

extension StateSource: PersistedSource {
    func persist(by states: PersistedStates?) {
        persistence = states
        // What it has now was loaded, or is what it begins with.
        captured = version
        // What is written is the whole value, so there is nothing to be saved by changes.
        access.takeChanges = nil
    }

    func keepEarlierChanges() {
        guard version > StateCell<Value>.firstVersion else { return }
        captured = 0
        persistence?.didChange()
    }

    func captureAgain() { captured = 0 }

    func capture() throws -> [UInt8]? {
        guard captured < version, let persistence else { return nil }
        guard let value = access.read() else { throw TrebuchetError(.actorNotFound, "the actor is gone") }
        let nodes = self.nodes.withLock { $0 }
        let isKept = nodes.isEmpty && self.isKept
        var bytes: [UInt8]?
        if nodes.isEmpty, !isKept {
            forgetLast()
        } else {
            switch update(of: value) {
            case .failed(let error): throw error
            case let event:
                if case .update(let update) = event { bytes = update.data.map { Array($0) } }
                persistence.show { for node in nodes { node.send(event) } }
            }
        }
        if let feed = feeding(filters.current) { persistence.show(feed) }
        captured = version
        return try bytes ?? json(value)
    }

    private func json(_ value: Value) throws -> [UInt8] {
        var data = ByteBuffer()
        do {
            try (home?.coder ?? ValueCoder()).encode(value, into: &data)
        } catch {
            throw TrebuchetError(.internal, "state of type \(Value.self) cannot be encoded: \(describe(error))")
        }
        return Array(data.bytes)
    }
}
