internal import Bytes

extension ServerEvent {
    /// The details of a failed call, in addition to the error code.
    public struct Failure: Sendable, Equatable {
        /// The number of the call.
        public let call: UInt64
        /// The name of the error that the method threw: `Demo.Shop.Problem.soldOut`, without associated values. Nil for an
        /// error of the framework.
        public let errorDescription: String?
        /// The number of the error in the server log; nil if its text was sent to the caller.
        public let errorCode: String?
        /// The reason why the arguments do not match the method. It may contain arguments, so only the inspector shows it.
        package let reason: String?

        package init(call: UInt64, errorDescription: String?, errorCode: String?, reason: String? = nil) {
            (self.call, self.errorDescription, self.errorCode) = (call, errorDescription, errorCode)
            self.reason = reason?.prefix(bytes: 512)
        }
    }
}
