internal import Glibc
internal import Platform

extension RuleBook {
    /// Bytes that a file of rules may have.
    static let longestFile = 1 << 20

    /// Reads rules from a file; throws all that is wrong with it. From a pipe too, as long as what comes does not let wait for more
    /// than 5 seconds.
    public init(contentsOfFile path: String) throws(RuleBookError) {
        try self.init(contentsOfFile: path, patienceMilliseconds: 5_000)
    }

    /// - Parameter patienceMilliseconds: how long to wait for more, where a file is a pipe.
    init(contentsOfFile path: String, patienceMilliseconds: Int32) throws(RuleBookError) {
        func problem(_ message: String) -> RuleBookError {
            RuleBookError(
                problems: [RuleProblem(file: path, line: nil, column: nil, member: nil, message: message)])
        }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw problem("cannot be read (\(String(cString: strerror(errno))))") }
        defer { close(descriptor) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            // Who waits here for a pipe hears of no other signal.
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, patienceMilliseconds) != 0 else { throw problem("is no file, and nothing comes") }
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count >= 0 else { throw problem("cannot be read (\(String(cString: strerror(errno))))") }
            guard count > 0 else { break }
            text += buffer[..<count]
            guard text.count <= Self.longestFile else { throw problem("has more than \(Self.longestFile) bytes") }
        }
        try self.init(json: text, file: path)
    }

    /// - Parameter file: what problems say where they are.
    public init(json text: [UInt8], file: String = "rules") throws(RuleBookError) {
        var reader = RuleReader(text.withoutByteOrderMark, file: file)
        self = try reader.book()
    }

    /// What counts where a file says nothing, as a file.
    public static let defaults = """
        {
          "collections": {
            "*": {
              "read": "anyone",
              "create": "anyone",
              "update": ["creator", "no-creator"],
              "delete": ["creator", "no-creator"],
              "fields": {},
              "otherFields": true
            }
          },
          "rooms": {
            "*": {
              "join": "anyone",
              "list": "nobody",
              "publish": "anyone"
            }
          }
        }
        """
}
