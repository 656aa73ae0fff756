internal import Glibc
internal import Platform

extension RulesFile {
    /// The maximum size of a rules file in bytes.
    static let maximumFileLength = 1 << 20

    /// Reads rules from a file; throws all problems of the file. The file may be a pipe, if no wait for its data takes more
    /// than 5 seconds.
    public init(contentsOfFile path: String) throws(RulesFileError) {
        try self.init(contentsOfFile: path, patienceMilliseconds: 5_000)
    }

    /// - Parameter patienceMilliseconds: the maximum time to wait for data of a pipe.
    init(contentsOfFile path: String, patienceMilliseconds: Int32) throws(RulesFileError) {
        func problem(_ message: String) -> RulesFileError {
            RulesFileError(
                problems: [RuleProblem(file: path, line: nil, column: nil, member: nil, message: message)])
        }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw problem("cannot be read (\(String(cString: strerror(errno))))") }
        defer { close(descriptor) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            // The wait for a pipe is limited, because the calling thread handles no other signal meanwhile.
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, patienceMilliseconds) != 0 else {
                throw problem("is not a regular file and has no data")
            }
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count >= 0 else { throw problem("cannot be read (\(String(cString: strerror(errno))))") }
            guard count > 0 else { break }
            text += buffer[..<count]
            guard text.count <= Self.maximumFileLength else {
                throw problem("has more than \(Self.maximumFileLength) bytes")
            }
        }
        try self.init(json: text, file: path)
    }

    /// - Parameter file: the file name for problems.
    public init(json text: [UInt8], file: String = "rules") throws(RulesFileError) {
        var reader = RuleReader(text.withoutByteOrderMark, file: file)
        self = try reader.rulesFile()
    }

    /// The default rules, written as a rules file.
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
