internal import Bytes
internal import TrebuchetWire

/// A state that is kept in a store. All in the actor's isolation, which is its reactor.
extension StateSource {
    /// - Parameter states: who writes the state; nil for nobody.
    func persist(by states: PersistedStates?) {
        persistence = states
        // What it has now was loaded, or is what it begins with.
        captured = version
        // What is written is the whole value, so there is nothing to be saved by changes.
        takeChanges = nil
    }

    /// Changes that were made before there was anybody to write them are written now.
    func keepEarlierChanges() {
        guard version > Self.firstVersion else { return }
        captured = 0
        persistence?.didChange()
    }

    /// What was captured was not kept.
    func captureAgain() { captured = 0 }

    /// The value as it is stored, with what its observers are sent made ready behind the write; nil when it has not changed since
    /// the last capture.
    func capture() throws -> [UInt8]? {
        guard captured < version, let persistence else { return nil }
        let broadcasters = current
        var bytes: [UInt8]?
        if broadcasters.isEmpty, !isKept {
            recent.forget()
        } else {
            let event = update()
            if case .failed(let error) = event { throw error }
            if case .update(let update) = event { bytes = update.data.map { Array($0) } }
            persistence.show(while: { true }) { for broadcaster in broadcasters { broadcaster.send(event) } }
        }
        if let feed = feeding(filters.current) { persistence.show(while: { true }, feed) }
        captured = version
        return StoredState(version: storedVersion, json: try bytes ?? json()).bytes
    }

    private func json() throws -> [UInt8] {
        var data = ByteBuffer()
        do {
            if try property.encode(with: coder(), into: &data) { return Array(data.bytes) }
        } catch {
            throw unencodable(error)
        }
        throw TrebuchetError(.actorNotFound, "the actor is gone")
    }
}
