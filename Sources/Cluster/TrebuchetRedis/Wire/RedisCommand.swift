/// A command in wire format: an array of texts.
package struct RedisCommand: Sendable {
    package private(set) var bytes: [UInt8]

    /// Creates a command.
    ///
    /// - Parameter name: one word. The second word of a two-word command is its first argument.
    package init(_ name: StaticString, _ arguments: [RedisArgument] = []) {
        bytes = []
        bytes.reserveCapacity(arguments.reduce(32 + name.utf8CodeUnitCount) { $0 + $1.maximumBytes + 16 })
        append(kind: UInt8(ascii: "*"), count: arguments.count + 1)
        append(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        for argument in arguments {
            switch argument {
            case .bytes(let bytes): append(bytes)
            case .text(let text): append(text.utf8)
            case .integer(let number): append(String(number).utf8)
            }
        }
    }

    /// Creates two commands in sequence.
    init(_ name: StaticString, _ arguments: [RedisArgument], then next: RedisCommand) {
        self.init(name, arguments)
        bytes += next.bytes
    }

    private mutating func append(_ text: some Collection<UInt8>) {
        append(kind: UInt8(ascii: "$"), count: text.count)
        bytes.append(contentsOf: text)
        bytes.append(0x0D)
        bytes.append(0x0A)
    }

    private mutating func append(kind: UInt8, count: Int) {
        bytes.append(kind)
        if count < 10 {
            bytes.append(UInt8(truncatingIfNeeded: count) &+ 0x30)
        } else {
            bytes.append(contentsOf: String(count).utf8)
        }
        bytes.append(0x0D)
        bytes.append(0x0A)
    }
}

/// One argument of a command.
package enum RedisArgument: Sendable {
    case bytes([UInt8])
    case text(String)
    case integer(Int64)

    fileprivate var maximumBytes: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .text(let text): text.utf8.count
        case .integer: 20
        }
    }
}

extension RedisArgument: ExpressibleByStringLiteral {
    package init(stringLiteral text: String) { self = .text(text) }
}
