internal import Platform

/// The writes of one account to one collection, with the receipts of waiting callers.
struct WriteQueue: Sendable {
    private(set) var pending = PendingWrites(client: RandomToken.make())
    var receipts: [Int: WriteReceipt] = [:]
    /// True while a task sends the writes.
    var isSending = false
    /// The error because of which no write is accepted: stored writes cannot be read.
    private(set) var damage: CollectionError?
    let file: PendingWritesFile?

    init(_ file: PendingWritesFile?) {
        self.file = file
        read()
    }

    /// Reads the file again after a failure: it may have been repaired, or the folder may be unlocked now.
    mutating func read() {
        guard let file else { return }
        do throws(CollectionError) {
            if let stored = try file.read() { pending = stored }
            damage = nil
        } catch {
            damage = error
        }
    }

    mutating func enqueue(
        _ writes: [DocumentWrite], withdraw: @escaping @Sendable (Int) -> Void
    ) throws(CollectionError) -> (number: Int, receipt: WriteReceipt) {
        if damage != nil { read() }
        if let damage { throw damage }
        let number = try pending.append(writes, at: CollectionClock().now())
        let receipt = WriteReceipt { withdraw(number) }
        receipts[number] = receipt
        return (number, receipt)
    }

    /// Returns false when the write may have reached the server.
    mutating func withdraw(_ number: Int) -> Bool {
        receipts[number] = nil
        return pending.withdraw(number)
    }

    mutating func beginSending() -> [DocumentMutation] {
        let batch = pending.beginSending()
        isSending = !batch.isEmpty
        return batch
    }

    mutating func settle(_ outcome: MutationOutcome) -> WriteReceipt? {
        pending.settle(outcome)
        return receipts.removeValue(forKey: outcome.number)
    }

    mutating func removeWrites(through revision: Int) { pending.removeWrites(through: revision) }

    /// Returns the receipts of callers whose wait ends without a response.
    mutating func removeReceipts() -> [WriteReceipt] {
        defer { receipts = [:] }
        return receipts.sorted { $0.key < $1.key }.map(\.value)
    }
}
