internal import Bytes

/// The limits of one connection in the server's `hello`: settings of `ServerLimits`, under the names of the protocol.
package struct AdvertisedLimits: Hashable, Sendable, Decodable {
    /// The bytes that each in-flight call counts in addition to its message.
    package static let callOverhead = 4 << 10

    /// The maximum number of in-flight calls.
    package var callsPerConnection: Int
    /// The maximum size of their messages, plus `callOverhead` for each.
    package var callBytesPerConnection: Int
    /// The maximum number of streams.
    package var streamsPerConnection: Int
    /// The maximum size of a message in bytes.
    package var messageSize: Int
    /// The maximum number of references to actors of one client; 0 for a server that accepts none.
    package var clientActorsPerClient: Int
    /// The maximum size of a client's response to a server's call.
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

    /// The default limits of a server. A client assumes them until it receives others.
    package static let usual = AdvertisedLimits(
        callsPerConnection: 1_024, callBytesPerConnection: 16 << 20, streamsPerConnection: 256, messageSize: 1 << 20,
        clientActorsPerClient: 1_000, clientAnswerSize: 256 << 10)

    /// The members of the JSON object.
    private enum CodingKeys: String, CodingKey {
        case callsPerConnection, callBytesPerConnection, streamsPerConnection, messageSize
        case clientActorsPerClient, clientAnswerSize
    }

    /// Decodes the limits. An absent limit means unlimited, except for references: then the server accepts none.
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

    /// Appends the JSON.
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
