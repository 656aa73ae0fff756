/// The writes of one account to one collection, and who waits for them.
struct WriteQueue: Sendable {
    private(set) var pending = PendingWrites(client: Secret.make())
    var receipts: [Int: WriteReceipt] = [:]
    /// A task sends what waits.
    var isSending = false
    /// Why nothing can be written: writes of before cannot be read.
    private(set) var damage: CollectionError?
    let file: PendingWritesFile?

    init(_ file: PendingWritesFile?) {
        self.file = file
        read()
    }

    /// Reads the file, again when that could not be done before: it may have been mended, or the folder be free now.
    mutating func read() {
        guard let file else { return }
        do throws(CollectionError) {
            if let kept = try file.read() { pending = kept }
            damage = nil
        } catch {
            damage = error
        }
    }

    mutating func add(
        _ writes: [DocumentWrite], takeBack: @escaping @Sendable (Int) -> Void
    ) throws(CollectionError) -> (number: Int, receipt: WriteReceipt) {
        if damage != nil { read() }
        if let damage { throw damage }
        let number = try pending.add(writes, at: CollectionClock().now())
        let receipt = WriteReceipt { takeBack(number) }
        receipts[number] = receipt
        return (number, receipt)
    }

    /// False when it may have reached the server.
    mutating func takeBack(_ number: Int) -> Bool {
        receipts[number] = nil
        return pending.takeBack(number)
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

    mutating func forget(through revision: Int) { pending.forget(through: revision) }

    /// Those who wait, who are to be told that they wait in vain.
    mutating func takeReceipts() -> [WriteReceipt] {
        defer { receipts = [:] }
        return receipts.sorted { $0.key < $1.key }.map(\.value)
    }
}
