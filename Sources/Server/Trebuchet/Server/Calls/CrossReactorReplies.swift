internal import Bytes

/// The outcomes of calls of a batch, in order. They belong to the other reactor until delivery, and then to the connection.
final class CrossReactorReplies: @unchecked Sendable {
    // `@unchecked Sendable`: handed from one reactor to the other as a whole.
    enum Outcome {
        case result(UnsafeRawBufferPointer)
        case failed(any Error)
        /// It did not run: its actor has been deactivated.
        case deactivated
        /// It runs in a task and responds separately.
        case deferred
        /// It has no waiting caller.
        case withdrawn
    }

    private static let (failed, deactivated, deferred, withdrawn) = (Int32(-1), Int32(-2), Int32(-3), Int32(-4))

    private(set) var first = 0
    private(set) var count = 0
    /// The end of each result in `bytes`, or a negative code for another outcome.
    private let ends = UnsafeMutablePointer<Int32>.allocate(capacity: CrossReactorCallBatch.maximumCalls)
    private var bytes = ByteBuffer()
    private var errors: [any Error] = []

    deinit { ends.deallocate() }

    var byteCount: Int { bytes.count }

    func reset(from first: Int, keepingAtMost limit: Int) {
        (self.first, count) = (first, 0)
        bytes.reset(keepingAtMost: limit)
        if !errors.isEmpty { errors = [] }
    }

    func append(_ result: UnsafeRawBufferPointer) {
        bytes.append(result)
        append(Int32(bytes.count))
    }

    func append(_ error: any Error) {
        errors.append(error)
        append(Self.failed)
    }

    func appendDeactivated() { append(Self.deactivated) }
    func appendDeferred() { append(Self.deferred) }
    func appendWithdrawn() { append(Self.withdrawn) }

    private func append(_ end: Int32) {
        ends[count] = end
        count += 1
    }

    /// Calls `body` with each outcome and the index of its call, in order.
    func forEach(_ body: (Int, Outcome) -> Void) {
        var (start, failures) = (0, 0)
        for offset in 0..<count {
            let outcome: Outcome
            switch ends[offset] {
            case Self.failed:
                outcome = .failed(errors[failures])
                failures += 1
            case Self.deactivated: outcome = .deactivated
            case Self.deferred: outcome = .deferred
            case Self.withdrawn: outcome = .withdrawn
            case let end:
                outcome = .result(UnsafeRawBufferPointer(rebasing: bytes.bytes[start..<Int(end)]))
                start = Int(end)
            }
            body(first + offset, outcome)
        }
    }
}

extension CrossReactorReplies.Outcome {
    var isDeactivated: Bool { if case .deactivated = self { true } else { false } }
}
