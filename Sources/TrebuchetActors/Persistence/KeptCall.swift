/// The namespace of calls whose answers outlast the process.
package enum CallNamespace {
    package static let name = "calls"

    /// - Parameters:
    ///   - connection: the name of the connection that the call was sent over first.
    ///   - number: of the call, there.
    ///   - actor: that was called.
    package static func key(_ connection: String, _ number: UInt64, of actor: String) -> StateKey {
        StateKey(name, "\(connection)/\(number)", partition: actor)
    }

    /// The connection and the number of a call; nil for another key.
    package static func call(_ key: StateKey) -> (connection: String, number: UInt64)? {
        guard key.namespace == name, let slash = key.name.utf8.lastIndex(of: UInt8(ascii: "/")),
            let number = UInt64(key.name[key.name.utf8.index(after: slash)...])
        else { return nil }
        return (String(key.name[..<slash]), number)
    }
}

/// An `@Idempotent` call that is noted in the store with what it changes, so that it is known after the end of the process
/// whether it began, and what it was answered.
///
/// `@unchecked Sendable`: `isNoted` and `bytes` are touched on the reactor of the call's actor alone, and when nobody has it any more;
/// the rest is constant.
package final class KeptCall: @unchecked Sendable {
    let key: StateKey
    private let digest: UInt64
    private let principal: String?
    private let room: any KeptAnswerRoom
    /// That its answer has in the room for them.
    private var bytes = 0
    /// Whether the store was given word that it has begun.
    var isNoted = false

    /// - Parameters:
    ///   - digest: of what it asks for, the same in each process.
    ///   - principal: who calls.
    ///   - room: where its answer counts as long as it is kept.
    package init(_ key: StateKey, digest: UInt64, principal: String?, in room: any KeptAnswerRoom) {
        self.key = key
        self.room = room
        self.digest = digest
        self.principal = principal
    }

    deinit { room.release(bytes) }

    /// Word that it has begun.
    var begun: StateWrite { write(nil) }

    /// Its answer, or that there was one for which there is no room.
    func answered(_ answer: KeptAnswer) -> StateWrite {
        guard room.take(answer.byteCount) else { return write(KeptAnswer.tooLong) }
        bytes += answer.byteCount
        return write(answer)
    }

    private func write(_ answer: KeptAnswer?) -> StateWrite {
        .put(StoredCall(digest: digest, principal: principal, answer: answer).bytes, key)
    }
}

/// Where the answers count that a store keeps: they have a limit, and each party has its share.
package protocol KeptAnswerRoom: Sendable {
    /// Whether there is room for so many bytes; they count from then on.
    func take(_ bytes: Int) -> Bool
    func release(_ bytes: Int)
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
