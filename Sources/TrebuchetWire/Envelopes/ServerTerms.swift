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
    /// References that it holds to actors of one client; 0 for a server that takes none.
    package var clientActorsPerClient: Int
    /// Bytes of a client's answer to a call of the server's.
    package var clientAnswerSize: Int

    package init(
        callsPerConnection: Int, callBytesPerConnection: Int, streamsPerConnection: Int, messageSize: Int,
        clientActorsPerClient: Int, clientAnswerSize: Int
    ) {
        self.callsPerConnection = callsPerConnection
        self.callBytesPerConnection = callBytesPerConnection
        self.streamsPerConnection = streamsPerConnection
        self.messageSize = messageSize
        self.clientActorsPerClient = clientActorsPerClient
        self.clientAnswerSize = clientAnswerSize
    }

    /// Those of a server whose settings nobody has changed, which a client goes by until it has heard others.
    package static let usual = ServerTerms(
        callsPerConnection: 1_024, callBytesPerConnection: 16 << 20, streamsPerConnection: 256, messageSize: 1 << 20,
        clientActorsPerClient: 1_000, clientAnswerSize: 256 << 10)

    private enum CodingKeys: String, CodingKey {
        case callsPerConnection, callBytesPerConnection, streamsPerConnection, messageSize
        case clientActorsPerClient, clientAnswerSize
    }

    /// What a server does not tell of is without limit, but for references: it takes none.
    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        func limit(_ key: CodingKeys) throws -> Int {
            max(1, try members.decodeIfPresent(Int.self, forKey: key) ?? .max)
        }
        callsPerConnection = try limit(.callsPerConnection)
        callBytesPerConnection = try limit(.callBytesPerConnection)
        streamsPerConnection = try limit(.streamsPerConnection)
        messageSize = try limit(.messageSize)
        clientActorsPerClient = max(0, try members.decodeIfPresent(Int.self, forKey: .clientActorsPerClient) ?? 0)
        clientAnswerSize = try limit(.clientAnswerSize)
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
        buffer.append(#","clientActorsPerClient":"# as StaticString)
        buffer.append(decimal: Int64(clientActorsPerClient))
        buffer.append(#","clientAnswerSize":"# as StaticString)
        buffer.append(decimal: Int64(clientAnswerSize))
        buffer.append(0x7D)
    }
}
