internal import Bytes

/// What a server takes over one connection, as its `hello` tells it: the settings of its `ServerLimits` of the same names.
package struct ServerTerms: Hashable, Sendable, Decodable {
    /// Bytes that each call under way counts beside its message.
    package static let callOverhead = 4 << 10

    /// Calls under way at once.
    package var callsPerConnection: Int
    /// Bytes of their messages, with `callOverhead` for each.
    package var callBytesPerConnection: Int
    /// Streams at once.
    package var streamsPerConnection: Int
    /// Bytes of one message.
    package var messageSize: Int

    package init(callsPerConnection: Int, callBytesPerConnection: Int, streamsPerConnection: Int, messageSize: Int) {
        self.callsPerConnection = callsPerConnection
        self.callBytesPerConnection = callBytesPerConnection
        self.streamsPerConnection = streamsPerConnection
        self.messageSize = messageSize
    }

    private enum CodingKeys: String, CodingKey {
        case callsPerConnection, callBytesPerConnection, streamsPerConnection, messageSize
    }

    /// What a server does not tell of is without limit.
    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        func limit(_ key: CodingKeys) throws -> Int {
            max(1, try members.decodeIfPresent(Int.self, forKey: key) ?? .max)
        }
        callsPerConnection = try limit(.callsPerConnection)
        callBytesPerConnection = try limit(.callBytesPerConnection)
        streamsPerConnection = try limit(.streamsPerConnection)
        messageSize = try limit(.messageSize)
    }

    /// As JSON.
    func append(to buffer: inout ByteBuffer) {
        buffer.append(#"{"callsPerConnection":"# as StaticString)
        buffer.append(decimal: Int64(callsPerConnection))
        buffer.append(#","callBytesPerConnection":"# as StaticString)
        buffer.append(decimal: Int64(callBytesPerConnection))
        buffer.append(#","streamsPerConnection":"# as StaticString)
        buffer.append(decimal: Int64(streamsPerConnection))
        buffer.append(#","messageSize":"# as StaticString)
        buffer.append(decimal: Int64(messageSize))
        buffer.append(0x7D)
    }
}
