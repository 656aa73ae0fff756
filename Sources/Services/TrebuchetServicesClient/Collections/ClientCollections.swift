internal import Relays
internal import SharedState
internal import Synchronization
internal import TrebuchetClient

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The collections that a client uses, one object for each, for the lifetime of the backend.
final class ClientCollections: AccountObserver {
    private struct Contents {
        var collections: [String: ClientCollection] = [:]
        var folder: OfflineFolder?
        var results: QueryResultCache?
    }

    private let session: ClientSession
    /// Each version is a response of the server.
    private let responses = StateRelay(())
    private let contents = Mutex(Contents())

    init(_ session: ClientSession) { self.session = session }

    func storeWrites(in folder: URL, _ files: any FileStorage) {
        contents.withLock { contents in
            precondition(contents.collections.isEmpty, "configure where writes are stored before a collection is used")
            contents.folder = OfflineFolder(folder, files)
        }
    }

    /// - Parameter make: creates the result storage in the folder.
    func storeResults(_ make: (OfflineFolder) -> QueryResultCache) {
        contents.withLock { $0.results = $0.folder.map(make) }
    }

    func collection(_ name: String, _ client: TrebuchetClient) -> ClientCollection {
        contents.withLock { contents in
            if let collection = contents.collections[name] { return collection }
            // The signed-in account is stored with the session, so all other accounts are signed out.
            if contents.collections.isEmpty, let results = contents.results, session.isOwnerOfConnections,
                session.loadFailure == nil
            {
                let account = session.account
                Task.detached(priority: .utility) { results.removeAll(except: account) }
            }
            let folder = contents.folder
            let collection = ClientCollection(name, client, session, contents.results, responses) { account in
                folder.map { PendingWritesFile(name, of: account, in: $0) }
            }
            contents.collections[name] = collection
            return collection
        }
    }

    private var collections: [ClientCollection] { contents.withLock { Array($0.collections.values) } }

    // MARK: Accounts

    /// Handles another account, or none: nothing of the previous account is shown or sent any more, and its results are
    /// removed.
    func accountChanged(from before: ClientAccount) {
        let results = contents.withLock { $0.results }
        results?.remove(of: before)
        for collection in collections { collection.accountChanged(from: before) }
    }

    /// Returns when the server has answered all pending writes of the current account, at once when there are none. Otherwise
    /// it returns two seconds after there is a connection, or after `limit`.
    func waitUntilSent(_ client: TrebuchetClient, within limit: Duration) async {
        let account = session.account
        let isSent = { @Sendable [weak self] in self?.collections.allSatisfy { !$0.waits(for: account) } ?? true }
        guard !isSent() else { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [responses] in
                for await _ in responses.stream where isSent() { return }
            }
            group.addTask {
                for await state in client.connectionState.stream where state == .connected || state == .closed {
                    if state == .connected { try? await Task.sleep(for: .seconds(2)) }
                    return
                }
            }
            group.addTask { try? await Task.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
    }

    // MARK: Shutdown

    /// Writes the results and unlocks the folder.
    func close() {
        let (results, folder) = contents.withLock { ($0.results, $0.folder) }
        results?.close()
        folder?.close()
    }
}
