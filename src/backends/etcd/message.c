
#include "message.h"

#include <stddef.h>

int hf__et_pack(struct grpc_call *c, const void *message)
{
    uint8_t *p = hf__grpc_room(c, protobuf_c_message_get_packed_size(message));

    if (p)
        protobuf_c_message_pack(message, p);
    return p ? 0 : HF_ENOMEM;
}
