/// The namespace of recorded responses that survive the process.
package enum IdempotencyNamespace {
    package static let name = "calls"

    /// Returns the key of a call.
    ///
    /// - Parameters:
    ///   - connection: the name of the connection over which the call was first sent.
    ///   - number: the number of the call on that connection.
    ///   - actor: the name of the called actor.
    package static func key(_ connection: String, _ number: UInt64, of actor: String) -> StateKey {
        StateKey(name, "\(connection)/\(number)", partition: actor)
    }

    /// Returns the connection and the number of a call; nil for another key.
    package static func call(_ key: StateKey) -> (connection: String, number: UInt64)? {
        guard key.namespace == name, let slash = key.name.utf8.lastIndex(of: UInt8(ascii: "/")),
            let number = UInt64(key.name[key.name.utf8.index(after: slash)...])
        else { return nil }
        return (String(key.name[..<slash]), number)
    }
}

/// An `@Idempotent` call that is recorded in the store together with its changes. After a restart the record shows whether the
/// call has started, and its response.
///
/// `@unchecked Sendable`: `isStartRecorded` and `bytes` are accessed only on the reactor of the call's actor, and in `deinit`; the rest
/// is constant.
package final class IdempotencyRecord: @unchecked Sendable {
    let key: StateKey
    private let digest: UInt64
    private let principal: String?
    private let quota: any RecordedResponseQuota
    /// The size of its response in the quota.
    private var bytes = 0
    /// Set after the record of its start was passed to the store.
    var isStartRecorded = false

    /// Creates a record.
    ///
    /// - Parameters:
    ///   - digest: the digest of the request, equal in all processes.
    ///   - principal: the id of the caller.
    ///   - quota: the quota in which the response counts while it is recorded.
    package init(_ key: StateKey, digest: UInt64, principal: String?, in quota: any RecordedResponseQuota) {
        self.key = key
        self.quota = quota
        self.digest = digest
        self.principal = principal
    }

    deinit { quota.release(bytes) }

    /// The write that records its start.
    var startWrite: StateWrite { write(nil) }

    /// Returns the write that records the response, or a replacement if the quota is exhausted.
    func responseWrite(_ response: RecordedResponse) -> StateWrite {
        guard quota.reserve(response.byteCount) else { return write(RecordedResponse.tooLong) }
        bytes += response.byteCount
        return write(response)
    }

    private func write(_ response: RecordedResponse?) -> StateWrite {
        .put(PersistedIdempotencyRecord(digest: digest, principal: principal, answer: response).bytes, key)
    }
}

/// The quota for recorded responses in a store, with a part for each quota scope.
package protocol RecordedResponseQuota: Sendable {
    /// Reserves bytes. Returns false if the quota is exhausted.
    func reserve(_ bytes: Int) -> Bool
    func release(_ bytes: Int)
}

/// The response of a call: the result as JSON, empty for a method without a result, or the error.
package typealias RecordedResponse = Result<[UInt8], TrebuchetError>

extension RecordedResponse {
    static var tooLong: RecordedResponse {
        .failure(TrebuchetError(.unknownOutcome, "the call was executed, but its response was too large to record"))
    }

    var byteCount: Int {
        switch self {
        case .success(let bytes): bytes.count
        case .failure(let error): error.message.utf8.count + (error.data?.count ?? 0)
        }
    }
}
