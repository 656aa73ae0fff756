/// The framing of a request's body (RFC 9112 §6).
package enum HTTPBodyFraming: Sendable, Equatable {
    /// No body, or one without bytes.
    case empty
    /// A body with a `Content-Length` above 0.
    case length(Int)
    /// A body in the transfer coding `chunked`.
    case chunked
}

/// The limits of a request's body.
package struct HTTPBodyLimits: Sendable {
    /// The maximum size of the body, beyond which the request is rejected with 413.
    package let bytes: Int
    /// The maximum time from the permission to send the body to its last byte, beyond which the request is rejected with 408.
    package let time: Duration
    /// The names of the settings, for rejections.
    package let settings: (bytes: String, time: String)

    package init(bytes: Int, time: Duration, settings: (bytes: String, time: String)) {
        (self.bytes, self.time, self.settings) = (bytes, time, settings)
    }

    fileprivate var tooLarge: HTTPRejection {
        HTTPRejection(413, "the body is over \(bytes) bytes (\(settings.bytes))")
    }
}

/// An incremental decoder of one request's body (RFC 9112 §6.3, §7.1). A pure value.
///
/// It is strict, because differences between parsers allow request smuggling. Chunk extensions and trailers are ignored.
package struct HTTPBodyReader {
    private enum State: Equatable {
        /// The remaining bytes of a body with a length.
        case content(Int)
        /// The remaining bytes of a chunk.
        case chunk(Int)
        case size(Int, digits: Int)
        case sizeExtension(Int)
        case sizeLineFeed(Int)
        case chunkReturn, chunkLineFeed
        case trailerStart, trailer, trailerLineFeed, lastLineFeed
        case complete
    }

    /// The maximum size of all chunk extensions and trailers.
    package static let maximumIgnoredBytes = 16 << 10
    /// The maximum number of digits of a chunk's size.
    private static let maximumDigits = 16

    private var state: State
    private let limits: HTTPBodyLimits
    private var received = 0
    private var ignored = 0

    /// Throws a rejection with 413 if the announced length exceeds the limit.
    package init(_ framing: HTTPBodyFraming, _ limits: HTTPBodyLimits) throws(HTTPRejection) {
        self.limits = limits
        switch framing {
        case .empty: state = .complete
        case .length(let length):
            guard length <= limits.bytes else { throw limits.tooLarge }
            state = .content(length)
        case .chunked: state = .size(0, digits: 0)
        }
    }

    package var isComplete: Bool { state == .complete }

    /// The number of bytes until the end of the body, as far as it is known.
    var remainingBytes: Int {
        switch state {
        case .content(let rest): rest
        case .complete: 0
        default: limits.bytes - received
        }
    }

    /// Appends the content of `bytes` to `body`.
    ///
    /// - Returns: The number of bytes that belong to the request. The rest belongs to the next one.
    package mutating func read(
        _ bytes: UnsafeRawBufferPointer, into body: inout [UInt8]
    ) throws(HTTPRejection) -> Int {
        var at = 0
        while at < bytes.count {
            switch state {
            case .complete: return at
            case .content(let rest):
                let count = take(rest, bytes[at...], into: &body)
                state = count == rest ? .complete : .content(rest - count)
                at += count
            case .chunk(let rest):
                let count = take(rest, bytes[at...], into: &body)
                state = count == rest ? .chunkReturn : .chunk(rest - count)
                at += count
            default:
                state = try next(bytes[at])
                at += 1
            }
        }
        return at
    }

    private mutating func take(_ rest: Int, _ bytes: Slice<UnsafeRawBufferPointer>, into body: inout [UInt8]) -> Int {
        let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(rest))
        body.append(contentsOf: part)
        received += part.count
        return part.count
    }

    /// Returns the state after a byte of the framing.
    private mutating func next(_ byte: UInt8) throws(HTTPRejection) -> State {
        switch (state, byte) {
        case (.size(let size, digits: let digits), _): return try sizeState(after: byte, size, digits)
        case (.sizeExtension(let size), 0x0D): return .sizeLineFeed(size)
        case (.sizeExtension, _): return try ignore(byte, state)
        case (.sizeLineFeed(let size), 0x0A): return size == 0 ? .trailerStart : .chunk(size)
        case (.chunkReturn, 0x0D): return .chunkLineFeed
        case (.chunkLineFeed, 0x0A): return .size(0, digits: 0)
        case (.trailerStart, 0x0D): return .lastLineFeed
        case (.trailer, 0x0D): return .trailerLineFeed
        case (.trailerStart, _), (.trailer, _): return try ignore(byte, .trailer)
        case (.trailerLineFeed, 0x0A): return .trailerStart
        case (.lastLineFeed, 0x0A): return .complete
        default: throw Self.malformed
        }
    }

    private func sizeState(after byte: UInt8, _ size: Int, _ digits: Int) throws(HTTPRejection) -> State {
        guard let digit = Self.hexDigit(byte) else {
            guard digits > 0 else { throw Self.malformed }
            switch byte {
            case 0x0D: return .sizeLineFeed(size)
            case UInt8(ascii: ";"), 0x20, 0x09: return .sizeExtension(size)
            default: throw Self.malformed
            }
        }
        guard digits < Self.maximumDigits else { throw Self.malformed }
        let (product, overflow) = size.multipliedReportingOverflow(by: 16)
        guard !overflow, product <= limits.bytes - received, product + digit <= limits.bytes - received else {
            throw limits.tooLarge
        }
        return .size(product + digit, digits: digits + 1)
    }

    private mutating func ignore(_ byte: UInt8, _ next: State) throws(HTTPRejection) -> State {
        ignored += 1
        guard HTTPHeadParser.isFieldByte(byte), ignored <= Self.maximumIgnoredBytes else { throw Self.malformed }
        return next
    }

    private static var malformed: HTTPRejection { HTTPRejection(400, "the chunks of the body are malformed") }

    private static func hexDigit(_ byte: UInt8) -> Int? {
        switch byte {
        case 0x30...0x39: Int(byte) - 0x30
        case 0x41...0x46: Int(byte) - 0x41 + 10
        case 0x61...0x66: Int(byte) - 0x61 + 10
        default: nil
        }
    }
}
