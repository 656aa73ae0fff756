internal import Bytes
internal import TrebuchetWire

/// The stored form of an idempotency record: caller, digest of the request, and response.
package struct PersistedIdempotencyRecord {
    /// Distinguishes the call from another one with the same name.
    package let digest: UInt64
    package let principal: String?
    /// Nil for a call that has started and was not answered.
    package let answer: RecordedResponse?

    package init(digest: UInt64, principal: String?, answer: RecordedResponse?) {
        self.digest = digest
        self.principal = principal
        self.answer = answer
    }

    /// The JSON form. All members are texts, so that no number exceeds its range.
    private struct Form: Codable {
        var digest: String
        var principal: String?
        var result: String?
        var error: Failure?
    }

    /// The JSON form of an error.
    private struct Failure: Codable {
        var code: String
        var message: String
        var type: String?
        var data: String?
    }

    var bytes: [UInt8] {
        var form = Form(digest: String(digest, radix: 16), principal: principal)
        switch answer {
        case nil: break
        case .success(let result): form.result = String(decoding: result, as: UTF8.self)
        case .failure(let error):
            form.error = Failure(
                code: error.code.wire.rawValue, message: error.message, type: error.type,
                data: error.data.map { String(decoding: $0, as: UTF8.self) })
        }
        var buffer = ByteBuffer()
        do {
            try ValueCoder().encode(form, into: &buffer)
        } catch {
            // Texts can always be encoded.
            preconditionFailure("the idempotency record of a call cannot be encoded: \(error)")
        }
        return Array(buffer.bytes)
    }

    /// Decodes a record. Throws if the bytes are invalid.
    package init(_ bytes: [UInt8]) throws {
        let form = try bytes.withUnsafeBytes { try ValueCoder().decode(Form.self, from: $0) }
        digest = UInt64(form.digest, radix: 16) ?? 0
        principal = form.principal
        if let error = form.error {
            let code = TrebuchetError.Code(ErrorCode(rawValue: error.code))
            answer = .failure(
                TrebuchetError(code, error.message, type: error.type, data: error.data.map { Array($0.utf8) }))
        } else {
            answer = form.result.map { .success(Array($0.utf8)) }
        }
    }
}
