internal import Platform
internal import Relays
internal import Synchronization
internal import TrebuchetClient

/// Sends pending writes: in order, in batches, each repeated until it is answered. Write numbers prevent a repeated execution,
/// and the account name an execution under another account.
extension ClientCollection {
    /// Returns the delay after consecutive failures.
    static func delay(after failures: Int) -> Duration {
        Backoff(first: .milliseconds(20), limit: .seconds(2)).delay(afterFailures: failures + 1)
    }

    /// Returns the delay after consecutive refusals of a stream; the random factor spreads the attempts of many clients.
    static func delay(afterRefusals refusals: Int) -> Duration {
        let backoff = Backoff(first: .milliseconds(100), limit: .seconds(30))
        return backoff.delay(afterFailures: refusals) * Double.random(in: 0.5...1)
    }

    func actor() throws -> RemoteCollection {
        try client.resolve(RemoteCollection.self, id: ServiceNames.collection(name))
    }

    /// Starts to send pending writes of the current account, and those that were made without a sign-in before.
    func startSending() {
        let account = account
        if beginSending(of: account) { Task { await sendAll(of: account) } }
        guard case .user = account, session.isOwnerOfConnections, beginSending(of: .signedOut) else { return }
        Task { await sendAnonymousWrites() }
    }

    private func beginSending(of account: ClientAccount) -> Bool {
        withQueue(account) { queue in
            guard queue.damage == nil, !queue.isSending, queue.pending.isWaiting else { return false }
            queue.isSending = true
            return true
        }
    }

    /// Sends writes that were made without a sign-in, over a separate anonymous connection: the client's connection is signed
    /// in by now.
    private func sendAnonymousWrites() async {
        guard let anonymous = session.anonymousClient() else { return withQueue(.signedOut) { $0.isSending = false } }
        for failures in 0..<10 {
            do {
                try await connect()
                try await anonymous.connect()
                guard account != .signedOut else { break }
                while true {
                    let (batch, secret) = withQueue(.signedOut) { ($0.beginSending(), $0.pending.client) }
                    guard !batch.isEmpty else { break }
                    let actor = try anonymous.resolve(RemoteCollection.self, id: ServiceNames.collection(name))
                    let mutations = batch.map { EncodedJSON($0.value) }
                    settle(
                        try await actor.commit(mutations, from: secret, as: ClientAccount.signedOut.name ?? ""),
                        of: .signedOut)
                }
                return await anonymous.close()
            } catch let error as TransportError where error.code == .closed {
                endWaits(error)
                break
            } catch {
                guard let delay = Self.delay(for: error, failures, as: .signedOut), account != .signedOut else { break }
                try? await Task.sleep(for: delay)
            }
        }
        await anonymous.close()
        withQueue(.signedOut) { $0.isSending = false }
        if account == .signedOut { startSending() }
    }

    private func sendAll(of account: ClientAccount) async {
        var failures = 0
        while true {
            let isSignedIn = account == self.account
            let (batch, secret) = withQueue(account) { queue in
                if !isSignedIn { queue.isSending = false }
                return (isSignedIn ? queue.beginSending() : [], queue.pending.client)
            }
            // The account may be signed in again by now, and anonymous writes are sent over another connection.
            guard isSignedIn else { return startSending() }
            guard !batch.isEmpty else { return }
            do {
                try await connect()
                guard account == self.account else { continue }
                settle(try await commit(batch, from: secret, as: account), of: account)
                failures = 0
            } catch let error as TransportError where error.code == .closed {
                withQueue(account) { $0.isSending = false }
                return endWaits(error)
            } catch {
                guard let delay = Self.delay(for: error, failures, as: account) else {
                    let refusal = error as? CollectionError ?? .refused("\(error)")
                    let outcomes = batch.map { MutationOutcome(number: $0.number, revision: 0, error: refusal) }
                    settle(outcomes, of: account)
                    continue
                }
                failures += 1
                try? await Task.sleep(for: delay)
                guard account == self.account else { continue }
                let isOfEndedSession = (error as? TrebuchetError)?.code == .unauthenticated
                // The connection belongs to another account: it is one of an ended session, or older than the sign-in.
                if isOfEndedSession || error as? CollectionError == .otherAccount { await session.signInConnection() }
            }
        }
    }

    private func commit(
        _ batch: [DocumentMutation], from secret: String, as account: ClientAccount
    ) async throws -> [MutationOutcome] {
        let mutations = batch.map { EncodedJSON($0.value) }
        guard let name = account.name else { return try await actor().commit(mutations, from: secret) }
        return try await actor().commit(mutations, from: secret, as: name)
    }

    /// Returns the delay before the next attempt; nil when another attempt cannot succeed.
    static func delay(for error: any Error, _ failures: Int, as account: ClientAccount) -> Duration? {
        switch error {
        case CollectionError.rateLimited(let wait): return .milliseconds(wait)
        case CollectionError.closed, CollectionError.storeFailed, CollectionError.unknownOutcome,
            CollectionError.otherAccount:
            return delay(after: failures)
        case is CollectionError: return nil
        case let error as TrebuchetError:
            var permanentCodes: Set<TrebuchetError.Code> = [
                .unauthorized, .unauthenticated, .actorNotFound, .methodNotFound, .invalidArguments,
            ]
            // A session has ended: soon either its account is signed in again, or it is known to be signed out.
            if case .user = account { permanentCodes.remove(.unauthenticated) }
            let isPermanent = permanentCodes.contains(error.code)
            return isPermanent ? nil : delay(after: failures)
        default: return delay(after: failures)
        }
    }

    /// Connects and returns when there is a connection; throws when the client was closed.
    func connect() async throws {
        var failures = 0
        for await state in client.connectionState.stream {
            switch state {
            case .connected: return
            case .connecting, .draining: continue
            case .disconnected:
                if failures > 0 { try await Task.sleep(for: Self.delay(after: failures)) }
                failures += 1
                // An error arrives as the next state.
                try? await client.connect()
            case .closed: throw TransportError(.closed, "the client was closed")
            }
        }
        throw CancellationError()
    }

    // MARK: Queries

    /// Opens a query, after a close of the same query in progress: the server counts a query once for each connection.
    func open(_ query: CollectionQuery, again: Bool) async throws -> QueryTicket {
        while let closing = contents.withLock({ $0.closing[query] }) { await closing.value }
        // Closes it first, because the server would continue the query of the previous account.
        if again { try await actor().close(query) }
        return try await actor().open(query)
    }

    /// Closes a query that no value shows any more.
    func close(_ query: CollectionQuery) {
        guard client.connectionState.currentValue == .connected else { return }
        contents.withLock { contents in
            guard contents.closing[query] == nil, !contents.observers.values.contains(where: { $0.query == query })
            else {
                return
            }
            contents.closing[query] = Task {
                try? await actor().close(query)
                self.contents.withLock { $0.closing[query] = nil }
            }
        }
    }
}
