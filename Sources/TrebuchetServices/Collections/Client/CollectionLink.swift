internal import Networking
internal import Relays
internal import Synchronization
internal import Trebuchet

/// A collection as a client has it: the writes that wait, and the results that show it.
final class CollectionLink: Sendable {
    struct Contents {
        var pending = PendingWrites(client: CollectionSecret.make())
        var receipts: [Int: WriteReceipt] = [:]
        var feeds: [Int: any CollectionFeed] = [:]
        var lastFeed = 0
        /// A task sends what waits.
        var isSending = false
        /// Why nothing can be written: writes of before cannot be read.
        var damage: CollectionError?
    }

    /// Larger commands are not sent at all: a message that is larger than the server takes would end the connection.
    static let largestCommand = 512 << 10

    let name: String
    let client: TrebuchetClient
    private let file: PendingWritesFile?
    /// Held while the file is written, so that an older content never replaces a newer one.
    private let saving = Mutex(())
    let contents: Mutex<Contents>

    init(_ name: String, _ client: TrebuchetClient, _ file: PendingWritesFile?) {
        self.name = name
        self.client = client
        self.file = file
        var contents = Contents()
        do throws(CollectionError) {
            if let pending = try file?.read() { contents.pending = pending }
        } catch {
            contents.damage = error
        }
        self.contents = Mutex(contents)
        startSending()
    }

    // MARK: Results

    func add(_ feed: any CollectionFeed) -> Int {
        contents.withLock { contents in
            contents.lastFeed += 1
            contents.feeds[contents.lastFeed] = feed
            return contents.lastFeed
        }
    }

    func remove(_ number: Int) {
        let removed = contents.withLock { $0.feeds.removeValue(forKey: number) }
        _ = removed
        forgetSeen()
    }

    /// Whether a result of this query is shown.
    func shows(_ query: CollectionQuery) -> Bool {
        contents.withLock { $0.feeds.values.contains { $0.query == query } }
    }

    /// Forgets the writes that all results show.
    func forgetSeen() {
        contents.withLock { contents in
            let seen = contents.feeds.values.map(\.seen).min() ?? .max
            contents.pending.forget(through: seen)
        }
    }

    func refreshFeeds() {
        let feeds = contents.withLock { Array($0.feeds.values) }
        for feed in feeds { feed.refresh() }
    }

    var pending: PendingWrites { contents.withLock { $0.pending } }
    var damage: CollectionError? { contents.withLock { $0.damage } }

    // MARK: Writes

    /// Queues a write behind those that wait, and shows it.
    func write(_ command: DocumentCommand) -> WriteReceipt {
        let bytes = command.byteCount
        guard bytes <= Self.largestCommand else {
            return WriteReceipt(
                .failure(
                    CollectionError.documentTooLarge(id: command.id.text, bytes: bytes, limit: Self.largestCommand)))
        }
        let number: Int
        let receipt: WriteReceipt
        do throws(CollectionError) {
            (number, receipt) = try contents.withLock { contents throws(CollectionError) in
                if let damage = contents.damage { throw damage }
                let number = try contents.pending.add(command)
                let receipt = WriteReceipt { [weak self] in self?.takeBack(number) }
                contents.receipts[number] = receipt
                return (number, receipt)
            }
        } catch {
            return WriteReceipt(.failure(error))
        }
        do throws(CollectionError) {
            try save()
        } catch {
            contents.withLock { contents in
                _ = contents.pending.takeBack(number)
                contents.receipts[number] = nil
            }
            receipt.settle(.failure(error))
        }
        refreshFeeds()
        startSending()
        return receipt
    }

    private func takeBack(_ number: Int) {
        let isTaken = contents.withLock { contents in
            contents.receipts[number] = nil
            return contents.pending.takeBack(number)
        }
        guard isTaken else { return }
        try? save()
        refreshFeeds()
    }

    func save() throws(CollectionError) {
        guard let file else { return }
        try saving.withLock { _ throws(CollectionError) in try file.replace(pending) }
    }

    /// Takes in what the server has answered.
    func settle(_ outcomes: [MutationOutcome]) {
        var settled: [(WriteReceipt?, (any Error)?)] = []
        let feeds = contents.withLock { contents in
            for outcome in outcomes {
                contents.pending.settle(outcome)
                settled.append((contents.receipts.removeValue(forKey: outcome.number), outcome.error))
            }
            return Array(contents.feeds.values)
        }
        forgetSeen()
        // One that stays in the file is sent again after a restart, and not done again.
        try? save()
        for feed in feeds { feed.refresh() }
        for (receipt, error) in settled {
            if let receipt {
                receipt.settle(error.map { .failure($0) } ?? .success(()))
            } else if let error {
                // It was made before a restart: nobody waits for it.
                for feed in feeds { feed.report(error) }
            }
        }
    }

    /// Ends all that waits, as the client was closed. Writes in a file stay there.
    func giveUp(_ error: any Error) {
        let receipts = contents.withLock { contents in
            defer { contents.receipts = [:] }
            return contents.receipts.values
        }
        for receipt in receipts { receipt.settle(.failure(error)) }
    }
}
