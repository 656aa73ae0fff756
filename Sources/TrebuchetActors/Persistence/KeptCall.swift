/// The namespace of calls whose answers outlast the process.
package enum CallNamespace {
    package static let name = "calls"

    /// - Parameters:
    ///   - connection: the name of the connection that the call was sent over first.
    ///   - number: of the call, there.
    package static func key(_ connection: String, _ number: UInt64) -> StateKey {
        StateKey(name, "\(connection)/\(number)")
    }
}

/// An `@Idempotent` call that is noted in the store with what it changes, so that it is known after the end of the process
/// whether it began, and what it was answered.
///
/// `@unchecked Sendable`: `isNoted` is touched on the reactor of the call's actor alone; the rest is constant.
package final class KeptCall: @unchecked Sendable {
    /// Bytes of an answer beyond which only that there was one is kept.
    static let longestAnswer = 1 << 20

    let key: StateKey
    private let digest: UInt64
    private let principal: String?
    /// Whether the store was given word that it has begun.
    var isNoted = false

    /// - Parameters:
    ///   - digest: of what it asks for, the same in each process.
    ///   - principal: who calls.
    package init(_ key: StateKey, digest: UInt64, principal: String?) {
        self.key = key
        self.digest = digest
        self.principal = principal
    }

    /// Word that it has begun.
    var begun: StateWrite { write(nil) }

    /// Its answer.
    func answered(_ answer: KeptAnswer) -> StateWrite {
        write(answer.byteCount > Self.longestAnswer ? KeptAnswer.tooLong : answer)
    }

    private func write(_ answer: KeptAnswer?) -> StateWrite {
        .put(StoredCall(digest: digest, principal: principal, answer: answer).bytes, key)
    }
}

/// What a call was answered: the result in JSON, empty for a method without one, or the error.
package typealias KeptAnswer = Result<[UInt8], TrebuchetError>

extension KeptAnswer {
    static var tooLong: KeptAnswer {
        .failure(TrebuchetError(.unknownOutcome, "the call has run, and its answer was too large to be kept"))
    }

    var byteCount: Int {
        switch self {
        case .success(let bytes): bytes.count
        case .failure(let error): error.message.utf8.count + (error.data?.count ?? 0)
        }
    }
}
