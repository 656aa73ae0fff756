internal import Glibc

/// The memory limits for the replies of a server.
package struct RESPLimits: Hashable, Sendable {
    /// The maximum size of one line in bytes: a number, a word, an error. Default 64 KiB.
    package var lineBytes = 64 << 10
    /// The maximum size of one text in bytes. Default 64 MiB.
    package var bulkBytes = 64 << 20
    /// The maximum size of all texts and lines of one reply in bytes. Default 128 MiB.
    package var answerBytes = 128 << 20
    /// The maximum number of elements of one reply, including nested ones. Default 1,000,000.
    package var elements = 1_000_000
    /// The maximum depth of nested arrays. Default 16.
    package var depth = 16

    package init() {}
}

/// The error for invalid RESP, or for an exceeded limit. Parsing cannot continue after it.
package struct RESPViolation: Error, Equatable, Sendable, CustomStringConvertible {
    package let description: String
}

/// Parses values from bytes, independent of their segmentation. It buffers incomplete values, never more than
/// `RESPLimits` allow, and allocates memory for received bytes, not for announced ones.
package struct RESPParser: Sendable {
    /// An array whose elements are incomplete.
    private struct Open: Sendable {
        let kind: UInt8
        var left: Int
        var elements: [RESPValue] = []
    }

    /// The part of a value that the parser expects.
    private enum ParseResult: Sendable {
        case line
        /// The number of missing bytes, including the final line break.
        case bulk(kind: UInt8, left: Int)
        case failed(RESPViolation)
    }

    private let limits: RESPLimits
    private var part = ParseResult.line
    /// The bytes of an incomplete line or text.
    private var bufferedBytes: [UInt8] = []
    private var open: [Open] = []
    private var elementsLeft: Int
    private var bytesLeft: Int

    package init(limits: RESPLimits = RESPLimits()) {
        self.limits = limits
        elementsLeft = limits.elements
        bytesLeft = limits.answerBytes
    }

    /// The number of buffered bytes and elements.
    package var bufferedCount: Int { bufferedBytes.count + open.reduce(0) { $0 + $1.elements.count } }

    /// Consumes `rest` up to the end of a value; nil if all was consumed and more is needed.
    package mutating func next(_ rest: inout UnsafeRawBufferPointer) throws(RESPViolation) -> RESPValue? {
        do throws(RESPViolation) {
            while !rest.isEmpty {
                var found: RESPValue?
                switch part {
                case .line: found = try takeLine(&rest)
                case .bulk(let kind, let left): found = try takeBulk(kind, left, &rest)
                case .failed(let violation): throw violation
                }
                if let found, let whole = try close(found) {
                    elementsLeft = limits.elements
                    bytesLeft = limits.answerBytes
                    return whole
                }
            }
            return nil
        } catch {
            part = .failed(error)
            bufferedBytes = []
            open = []
            throw error
        }
    }

    // MARK: Lines

    private mutating func takeLine(_ rest: inout UnsafeRawBufferPointer) throws(RESPViolation) -> RESPValue? {
        let end = memchr(rest.baseAddress!, 0x0A, rest.count).map {
            $0 - UnsafeMutableRawPointer(mutating: rest.baseAddress!)
        }
        let taken = UnsafeRawBufferPointer(rebasing: rest[..<(end.map { $0 + 1 } ?? rest.count)])
        guard bufferedBytes.count + taken.count <= limits.lineBytes else {
            throw RESPViolation(description: "a line is longer than \(limits.lineBytes) bytes")
        }
        rest = UnsafeRawBufferPointer(rebasing: rest[taken.count...])
        guard end != nil else {
            bufferedBytes.append(contentsOf: taken)
            return nil
        }
        guard !bufferedBytes.isEmpty else { return try read(taken) }
        bufferedBytes.append(contentsOf: taken)
        var line: [UInt8] = []
        swap(&line, &bufferedBytes)
        // A closure cannot throw a typed error here, so its result is returned.
        let outcome: Result<RESPValue?, RESPViolation> = line.withUnsafeBytes { line in
            do throws(RESPViolation) { return .success(try read(line)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    /// Reads a line with its end.
    private mutating func read(_ line: UnsafeRawBufferPointer) throws(RESPViolation) -> RESPValue? {
        guard line.count >= 3, line[line.count - 2] == 0x0D, memchr(line.baseAddress!, 0x0D, line.count - 2) == nil
        else {
            throw RESPViolation(description: "a line without a type or terminator")
        }
        let body = UnsafeRawBufferPointer(rebasing: line[1..<(line.count - 2)])
        switch line[0] {
        case UInt8(ascii: "+"): return .simple(try consumeBudget(body))
        case UInt8(ascii: "-"): return .error(RedisErrorReply(String(decoding: try consumeBudget(body), as: UTF8.self)))
        case UInt8(ascii: ":"):
            if let number = RESPNumber.integer(body) { return .integer(number) }
        case UInt8(ascii: ","):
            if let number = RESPNumber.double(body) { return .double(number) }
        case UInt8(ascii: "("):
            if RESPNumber.isBig(body) { return .bigNumber(try consumeBudget(body)) }
        case UInt8(ascii: "_"):
            if body.isEmpty { return .null }
        case UInt8(ascii: "#"):
            if body.count == 1, body[0] == UInt8(ascii: "t") || body[0] == UInt8(ascii: "f") {
                return .boolean(body[0] == UInt8(ascii: "t"))
            }
        case let kind: return try readLength(kind, body)
        }
        throw RESPViolation(description: "invalid value of type \(line[0])")
    }

    private mutating func consumeBudget(_ body: UnsafeRawBufferPointer) throws(RESPViolation) -> [UInt8] {
        try consumeBudget(body.count)
        return Array(body)
    }

    private mutating func consumeBudget(_ bytes: Int) throws(RESPViolation) {
        bytesLeft -= bytes
        guard bytesLeft >= 0 else {
            throw RESPViolation(description: "a reply has more than \(limits.answerBytes) bytes")
        }
    }

    /// Reads the beginning of a value with a length: a text or an array.
    private mutating func readLength(_ kind: UInt8, _ body: UnsafeRawBufferPointer) throws(RESPViolation) -> RESPValue?
    {
        // An empty line has no kind; a line break in its place was rejected above.
        guard let length = RESPNumber.integer(body), body.first != UInt8(ascii: "+") else {
            throw RESPViolation(description: "a value of type \(kind) without a length")
        }
        switch kind {
        case UInt8(ascii: "$"), UInt8(ascii: "!"), UInt8(ascii: "="):
            if length == -1, kind == UInt8(ascii: "$") { return .null }
            guard length >= 0, length <= limits.bulkBytes else {
                throw RESPViolation(description: "a string of \(length) bytes; the limit is \(limits.bulkBytes)")
            }
            try consumeBudget(Int(length))
            part = .bulk(kind: kind, left: Int(length) + 2)
            return nil
        case UInt8(ascii: "*"), UInt8(ascii: "~"), UInt8(ascii: "%"), UInt8(ascii: ">"), UInt8(ascii: "|"):
            if length == -1, kind == UInt8(ascii: "*") { return .null }
            return try startValue(kind, length)
        default: throw RESPViolation(description: "a value of unknown type \(kind)")
        }
    }

    // MARK: Texts

    private mutating func takeBulk(
        _ kind: UInt8, _ left: Int, _ rest: inout UnsafeRawBufferPointer
    ) throws(RESPViolation) -> RESPValue? {
        let count = min(left, rest.count)
        // Usually all bytes arrive at once, which needs one allocation.
        bufferedBytes.append(contentsOf: rest[..<count])
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        guard count == left else {
            part = .bulk(kind: kind, left: left - count)
            return nil
        }
        part = .line
        guard bufferedBytes.suffix(2).elementsEqual([0x0D, 0x0A]) else {
            throw RESPViolation(description: "a string longer than its length")
        }
        bufferedBytes.removeLast(2)
        if kind == UInt8(ascii: "=") {
            guard bufferedBytes.count >= 4, bufferedBytes[3] == UInt8(ascii: ":") else {
                throw RESPViolation(description: "a verbatim string without a format")
            }
            bufferedBytes.removeFirst(4)
        }
        var text: [UInt8] = []
        swap(&text, &bufferedBytes)
        return kind == UInt8(ascii: "!") ? .error(RedisErrorReply(String(decoding: text, as: UTF8.self))) : .bulk(text)
    }

    // MARK: Arrays

    private mutating func startValue(_ kind: UInt8, _ length: Int64) throws(RESPViolation) -> RESPValue? {
        let isPairs = kind == UInt8(ascii: "%") || kind == UInt8(ascii: "|")
        guard length >= 0, length <= elementsLeft / (isPairs ? 2 : 1) else {
            throw RESPViolation(description: "\(length) elements; the limit for a reply is \(limits.elements)")
        }
        guard open.count < limits.depth else {
            throw RESPViolation(description: "arrays nested more than \(limits.depth) deep")
        }
        guard kind != UInt8(ascii: ">") || open.isEmpty else {
            throw RESPViolation(description: "a push inside another value")
        }
        let count = Int(length) * (isPairs ? 2 : 1)
        elementsLeft -= count
        let begun = Open(kind: kind, left: count)
        guard count == 0 else {
            open.append(begun)
            return nil
        }
        return Self.value(begun)
    }

    /// Adds a value to the open array. Returns the value if there is none, or the array that it completes.
    private mutating func close(_ value: RESPValue) throws(RESPViolation) -> RESPValue? {
        var value = value
        while let last = open.indices.last {
            open[last].elements.append(value)
            open[last].left -= 1
            guard open[last].left == 0 else { return nil }
            // Attributes describe the next value and are ignored here.
            guard let whole = Self.value(open.removeLast()) else { return nil }
            value = whole
        }
        return value
    }

    private static func value(_ open: Open) -> RESPValue? {
        switch open.kind {
        case UInt8(ascii: "*"): .array(open.elements)
        case UInt8(ascii: "~"): .set(open.elements)
        case UInt8(ascii: "%"): .map(open.elements)
        case UInt8(ascii: ">"): .push(open.elements)
        default: nil
        }
    }
}
