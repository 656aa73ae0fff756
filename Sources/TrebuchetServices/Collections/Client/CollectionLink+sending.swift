internal import Networking
internal import Relays
internal import Synchronization
internal import Trebuchet

/// Sending what waits: in order, a batch at a time, each until it is answered. The server knows the numbers, so that what is
/// sent again is not done again.
extension CollectionLink {
    /// How long to wait after so many failures in a row.
    static func delay(after failures: Int) -> Duration { .milliseconds(min(20 << min(failures, 10), 2_000)) }

    func actor() throws -> DocumentCollection {
        try client.resolve(DocumentCollection.self, id: "\(CollectionHost.name)/\(name)")
    }

    func startSending() {
        let isToStart = contents.withLock { contents in
            guard !contents.isSending, contents.pending.isWaiting else { return false }
            contents.isSending = true
            return true
        }
        if isToStart { Task { await sendAll() } }
    }

    private func sendAll() async {
        var failures = 0
        while true {
            let (batch, secret) = contents.withLock { contents in
                let batch = contents.pending.beginSending()
                contents.isSending = !batch.isEmpty
                return (batch, contents.pending.client)
            }
            guard !batch.isEmpty else { return }
            do {
                try await connect()
                settle(try await actor().commit(batch, from: secret))
                failures = 0
            } catch let error as TransportError where error.code == .closed {
                contents.withLock { $0.isSending = false }
                return giveUp(error)
            } catch {
                guard let delay = Self.delay(for: error, failures) else {
                    settle(batch.map { MutationOutcome(number: $0.number, revision: 0, error: refusal(error)) })
                    continue
                }
                failures += 1
                try? await Task.sleep(for: delay)
            }
        }
    }

    /// How long to wait before it is tried again; nil when that would be of no use.
    static func delay(for error: any Error, _ failures: Int) -> Duration? {
        switch error {
        case CollectionError.rateLimited(let wait): return .milliseconds(wait)
        case CollectionError.closed, CollectionError.storeFailed: return delay(after: failures)
        case is CollectionError: return nil
        case let error as TrebuchetError:
            let isForGood = [.unauthorized, .unauthenticated, .actorNotFound, .methodNotFound, .invalidArguments]
                .contains(error.code)
            return isForGood ? nil : delay(after: failures)
        default: return delay(after: failures)
        }
    }

    private func refusal(_ error: any Error) -> CollectionError {
        error as? CollectionError ?? .refused("\(error)")
    }

    /// Returns when there is a connection, which it asks for; throws when the client was closed.
    func connect() async throws {
        var failures = 0
        for await state in client.connectionState.stream {
            switch state {
            case .connected: return
            case .connecting, .draining: continue
            case .disconnected:
                if failures > 0 { try await Task.sleep(for: Self.delay(after: failures)) }
                failures += 1
                // What it fails with comes as the next state.
                try? await client.connect()
            case .closed: throw TransportError(.closed, "the client was closed")
            }
        }
        throw CancellationError()
    }
}
