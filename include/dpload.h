/* SPDX-License-Identifier: Apache-2.0 */
/** @file dpload.h
 *  libdpload: folders of pictures to batches of training samples.
 *
 *  A loader owns worker threads that read, decode and augment pictures straight into preallocated
 *  batch slots. What it delivers is a pure function of (data, seed, epoch, options): never of the
 *  number of workers, of prefetch, of timing, or of how many devices or ranks share the work.
 *  Each sample of an epoch is delivered once over all ranks and devices.
 *
 *  The library never prints, exits, installs signal handlers or changes the locale, and keeps no
 *  mutable globals but one error text per thread. Several loaders may live in one process. */
#ifndef DPLOAD_H
#define DPLOAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#    define DPL_API __attribute__((visibility("default")))
#else
#    define DPL_API
#endif

#define DPL_VERSION "0.1.0"

/** Every status a call can return: X(name, value, text). 0 is success, errors are negative. */
#define DPL_STATUS_LIST(X)                                                                         \
    X(DPL_OK, 0, "success")                                                                        \
    X(DPL_EINVAL, -1, "invalid argument or option")                                                \
    X(DPL_ENOMEM, -2, "out of memory")                                                             \
    X(DPL_EIO, -3, "a file could not be read or written")                                          \
    X(DPL_EDATA, -4, "unusable data")                                                              \
    X(DPL_EOF, -5, "end of the epoch")                                                             \
    X(DPL_ETIMEOUT, -6, "not ready in time")                                                       \
    X(DPL_ECANCELED, -7, "canceled")                                                               \
    X(DPL_EDEVICE, -8, "device not usable")                                                        \
    X(DPL_ENOTSUP, -9, "not supported by this build")                                              \
    X(DPL_EFORK, -10, "the loader was opened in another process (fork)")                           \
    X(DPL_ECLOSED, -11, "closed")                                                                  \
    X(DPL_EINTERNAL, -12, "internal error")

#define DPL_STATUS_ENUM(name, value, text) name = (value),
typedef enum dpl_status { DPL_STATUS_LIST(DPL_STATUS_ENUM) } dpl_status;

/** One fixed English sentence for a status; never NULL, never freed. Any thread. */
DPL_API const char *dpl_status_text(int status);

/** Version of the library that is running, "major.minor.patch". Any thread. */
DPL_API const char *dpl_version(void);

typedef enum dpl_recipe {
    DPL_TRAIN = 0, /**< random crop, flips, rotation and the other augmentations */
    DPL_EVAL = 1   /**< resize the short side, centre crop; always exact */
} dpl_recipe;

typedef enum dpl_subset {
    DPL_SUBSET_ALL = 0,   /**< every sample of the source */
    DPL_SUBSET_TRAIN = 1, /**< without the `val_split` share of each class */
    DPL_SUBSET_VAL = 2    /**< only the `val_split` share of each class */
} dpl_subset;

/** What became of options.index. */
typedef enum dpl_index_use {
    DPL_INDEX_NONE = 0,       /**< not asked for */
    DPL_INDEX_USED = 1,       /**< no folder was listed */
    DPL_INDEX_WRITTEN = 2,    /**< every folder was listed, and the file written */
    DPL_INDEX_NOT_WRITTEN = 3 /**< every folder was listed, but the file cannot be written */
} dpl_index_use;

typedef enum dpl_dtype {
    DPL_UINT8 = 0,    /**< as decoded and augmented, 0..255 */
    DPL_FLOAT32 = 1,  /**< normalised; see options.mean */
    DPL_BFLOAT16 = 2, /**< the float32 value rounded to the nearest, ties to even; 16 bits each */
    DPL_FLOAT16 = 3   /**< the same as IEEE half */
} dpl_dtype;
typedef enum dpl_layout { DPL_NHWC = 0, DPL_NCHW = 1 } dpl_layout;
typedef enum dpl_decode_mode {
    DPL_DECODE_FAST = 0, /**< may decode at 1/2, 1/4, 1/8 size and resample with 16-bit weights */
    DPL_DECODE_EXACT = 1 /**< pixels equal Pillow's decode, crop and resize, bit for bit */
} dpl_decode_mode;
typedef enum dpl_crop {
    DPL_CROP_RESIZED = 0, /**< a random box, resized: torchvision's RandomResizedCrop */
    DPL_CROP_RANDOM = 1   /**< a window of the padded picture: torchvision's RandomCrop */
} dpl_crop;
typedef enum dpl_auto_augment {
    DPL_AUGMENT_NONE = 0,
    DPL_AUGMENT_RAND = 1,         /**< RandAugment */
    DPL_AUGMENT_TRIVIAL_WIDE = 2, /**< TrivialAugmentWide */
    DPL_AUGMENT_IMAGENET = 3      /**< AutoAugment, the policy learned on ImageNet */
} dpl_auto_augment;
typedef enum dpl_erase_mode {
    DPL_ERASE_VALUE = 0, /**< options.erase_value: torchvision's RandomErasing with a number */
    DPL_ERASE_COLOR = 1, /**< one random colour for each box: timm's mode "rand" */
    DPL_ERASE_PIXELS =
        2 /**< every number drawn anew: torchvision's value="random", timm's "pixel" */
} dpl_erase_mode;
typedef enum dpl_filter { DPL_BILINEAR = 0, DPL_BICUBIC = 1, DPL_NEAREST = 2 } dpl_filter;

/** A caller's own source of samples. All three functions may be called from several threads at
 *  once, and must give the same answer for the same index as long as the loader is open. */
typedef struct dpl_source {
    void *user; /**< passed back to every call */
    /** Number of samples, at least 1. Called once, by dpl_open(). */
    uint64_t (*count)(void *user);
    /** Encoded bytes (a whole JPEG, PNG or WebP file) of sample i.
     *  Copy at most cap bytes to buf and return the full length: when it is larger than cap the
     *  call is repeated with a larger buffer. Negative = this sample cannot be read (bad sample). */
    int64_t (*read)(void *user, uint64_t i, void *buf, size_t cap);
    /** Class index of sample i, -1 = unlabelled. */
    int32_t (*label)(void *user, uint64_t i);
    /** Name of sample i for messages, or NULL: "sample <i>" is used then. May be NULL. */
    const char *(*name)(void *user, uint64_t i);
} dpl_source;

/** Loader options. Fill with dpl_options_init(); the default is in [brackets].
 *  Everything the pointers point to is copied by dpl_open(). */
typedef struct dpl_options {
    size_t size; /**< sizeof as the caller compiled it, so that older callers keep working */

    /* --- source --- */
    const char
        *path; /**< folder with one sub-folder per class; NULL with `source`, and mostly with `list`
                    [NULL] */
    const char
        *list; /**< text file with one picture per line, `path<TAB>label`, instead of a folder of
                           classes; see below. With `path` too, relative paths begin there, else in
                           the list's folder [NULL] */
    const dpl_source *source; /**< the caller's own source instead of `path` and `list` [NULL] */
    const char *index; /**< file that keeps the listing of `path` from one run to the next: used as
                            long as no folder of the tree changed, else (or when it is not there) the
                            folders are listed and the file is written. The samples are the same
                            either way. dpl_info tells what became of it. It is mapped while the
                            loader is open: replace it, never change it in place [NULL] */
    const char *const *classes; /**< class names in label order, e.g. those of the training set for
                                     a validation set; NULL = the sub-folders, byte-wise sorted. A
                                     sub-folder that is not listed is an error [NULL] */
    int n_classes;              /**< entries of `classes` [0] */
    double val_split;           /**< share of each class that `subset` sets apart, 0..0.9 [0] */
    dpl_subset subset; /**< which part of the source this loader delivers [DPL_SUBSET_ALL] */

    /* --- order --- */
    int batch;       /**< samples per step over all ranks and devices, 1..1048576 [64] */
    int shuffle;     /**< 1 = another order each epoch, 0 = source order [1] */
    uint64_t seed;   /**< fixes order and augmentation [0] */
    int drop_last;   /**< 1 = leave out a last batch smaller than `batch` [0] */
    int rank, world; /**< this process and the number of processes that share the batch [0, 1] */
    uint64_t epochs; /**< epochs to prepare; 0 = no end: the next epoch is prefetched [0] */

    /* --- parts: how this rank's share of a batch is split over devices --- */
    /** Comma list, one part each: "cpu", "cpu,cpu", "sim:38ms"; GPUs as CUDA_VISIBLE_DEVICES leaves and
     *  numbers them: "cuda:0" or "0", "0-3", "GPU-8f3a" (the beginning of a UUID), "cuda" = all of them.
     *  "auto" = all of them, or "cpu" where there is none: dpl_info tells [NULL = "cpu"] */
    const char *devices;
    const int
        *split; /**< weight of each part, positive; NULL = even: sizes differ by at most 1 [NULL] */
    int n_split; /**< entries of `split`: the number of parts, or 0 [0] */

    /* --- pictures --- */
    dpl_recipe recipe; /**< [DPL_TRAIN] */
    int width, height; /**< delivered size in pixels, 1..8192 [224, 224] */
    int resize;        /**< DPL_EVAL: length of the resized short side in pixels; 0 = 256/224 of
                              the larger delivered side, rounded [0] */
    double scale_min,
        scale_max; /**< DPL_TRAIN: crop area / picture area, 0 < min <= max <= 1 [0.08, 1] */
    double ratio_min, ratio_max; /**< DPL_TRAIN: crop width / height, > 0 [3/4, 4/3] */
    double hflip;                /**< DPL_TRAIN: probability of a horizontal flip, 0..1 [0.5] */
    double rotate; /**< DPL_TRAIN: angle drawn from [-rotate, rotate] degrees, 0..180 [0] */
    dpl_filter rotate_filter; /**< of rotation, affine maps and the automatic policies: DPL_NEAREST
                                   or DPL_BILINEAR [DPL_NEAREST] */
    dpl_filter
        filter; /**< resize filter, DPL_BILINEAR or DPL_BICUBIC, antialiased [DPL_BILINEAR] */
    dpl_decode_mode decode; /**< [DPL_DECODE_FAST]; DPL_EVAL is always exact */
    int exif;               /**< 1 = apply the EXIF orientation, 0 = ignore it [1] */

    /* --- delivery --- */
    dpl_dtype dtype;       /**< [DPL_UINT8] */
    dpl_layout layout;     /**< [DPL_NHWC]; DPL_UINT8 is NHWC only */
    float mean[3], std[3]; /**< all but DPL_UINT8: (value / 255 - mean) / std per channel, RGB
                                [0.485 0.456 0.406, 0.229 0.224 0.225] */

    /* --- threads and memory --- */
    int workers; /**< threads that read, decode and augment, 1..1024; 0 = one per usable core
                       (affinity and cgroup quota respected) [0] */
    int readers; /**< threads that only read files, ahead of the workers, 0..1024; 0 = the workers read
                       themselves. For sources that make a read wait: as many reads are under way at
                       once [0] */
    int prefetch; /**< batches prepared ahead of the one in use, 1..64 [3] */

    /* --- bad samples --- */
    double max_bad;      /**< end with DPL_EDATA when more than this share of the samples is bad,
                                  0..1; 0 = the first one ends it. A share > 0 allows at least 10.
                                  Counted by each process as its batches are given out [0.001] */
    int strict;          /**< 1 = a decoder warning makes a sample bad [0] */
    uint64_t max_pixels; /**< larger pictures are bad samples [178956970] */
    int max_scans;       /**< progressive JPEG: more scans are a bad sample; of a picture above 10
                              megapixels proportionally fewer, but up to 16 are always taken [256] */
    uint64_t max_file_bytes; /**< larger files are bad samples [512 MiB] */

    /* --- more augmentation, DPL_TRAIN only: torchvision's transforms of these names on pictures of
           Pillow, applied in this order after crop and horizontal flip; rotation follows the affine
           map. Probabilities are 0..1, and 0 = off. docs/augment.md says how exact each one is. --- */

    /* crop */
    dpl_crop crop;   /**< [DPL_CROP_RESIZED] */
    int crop_resize; /**< DPL_CROP_RANDOM: short side in pixels before the crop; 0 = as it is [0] */
    /** DPL_CROP_RANDOM: pixels added on each side, 0..8192; more where that is still too small [0] */
    int crop_padding;
    /** Where padding, rotation and affine maps leave no picture: RGB levels, whole, 0..255 [0, 0, 0] */
    double fill[3];
    double vflip; /**< probability of a vertical flip [0] */

    /* automatic policies */
    dpl_auto_augment auto_augment; /**< [DPL_AUGMENT_NONE] */
    int ra_ops;                    /**< DPL_AUGMENT_RAND: operations per picture, 0..16 [2] */
    int ra_magnitude;              /**< DPL_AUGMENT_RAND: their strength, 0..30 [9] */

    /* colour */
    /** ColorJitter: brightness, contrast and saturation by a factor from 1 - v (at least 0) to 1 + v,
     *  0..100; hue turned by -v to v of the circle, 0..0.5; in random order [0, 0, 0, 0] */
    double color_jitter[4];
    double grayscale;                      /**< probability of RandomGrayscale [0] */
    double blur;                           /**< probability of GaussianBlur [0] */
    int blur_kernel;                       /**< its width in pixels, odd, 1..127 [23] */
    double blur_sigma_min, blur_sigma_max; /**< its sigma in pixels, 0 < min <= max [0.1, 2] */
    double invert;                         /**< probability of RandomInvert [0] */
    double posterize;                      /**< probability of RandomPosterize [0] */
    int posterize_bits;                    /**< bits that it keeps, 0..8 [4] */
    double solarize;                       /**< probability of RandomSolarize [0] */
    double solarize_threshold;             /**< levels from it on are inverted, 0..256 [128] */
    double sharpness;                      /**< probability of RandomAdjustSharpness [0] */
    double sharpness_factor;               /**< 0 = smooth, 1 = unchanged, up to 100 [2] */
    double autocontrast;                   /**< probability of RandomAutocontrast [0] */
    double equalize;                       /**< probability of RandomEqualize [0] */

    /* RandomAffine about the centre; off as long as all of it does nothing */
    double affine_degrees;      /**< turned by -v to v degrees, 0..180 [0] */
    double affine_translate[2]; /**< moved by up to these shares of width and height, 0..1 [0, 0] */
    double affine_scale_min, affine_scale_max; /**< enlarged by, 0 < min <= max [1, 1] */
    double affine_shear[2]; /**< sheared by -v to v degrees along x and y, 0..89 [0, 0] */

    /* RandomErasing, after normalising */
    double random_erase;                     /**< its probability [0] */
    double erase_scale_min, erase_scale_max; /**< its area / picture area, at most 1 [0.02, 0.33] */
    double erase_ratio_min, erase_ratio_max; /**< its height / width, > 0 [0.3, 3.3] */
    /** What it writes: normalised RGB, 0 = the mean colour; DPL_UINT8: the nearest level [0, 0, 0] */
    double erase_value[3];

    /* --- mixing of finished pictures, DPL_TRAIN only. One draw per step over all ranks: each sample
           is mixed with the next one of the step, the last with the first. A sample whose next one is
           bad stays as it is, and so does a step of one sample. Labels become soft ones, see dpl_part.
           With both on, each step is mixed one way or the other, with probability 1/2. Blends of
           uint8 are rounded to the nearest, halves up; of floats after each product and the sum, as
           torch does; of 16-bit floats the same, and the result once more. --- */
    double mixup; /**< blend the two, with weights lambda and 1 - lambda; lambda is drawn from
                        Beta(mixup, mixup) and rounded to a multiple of 2^-15; 0..1000, 0 = off [0] */
    double
        cutmix; /**< paste a box of the next sample, of 1 - lambda of the area before it is clipped;
                        lambda is drawn from Beta(cutmix, cutmix); 0..1000, 0 = off [0] */

    /** DPL_TRAIN with rotation or an affine map: 1 = crop, flips, affine map and rotation are one
     *  resample, by rotate_filter, of the box or window of the picture; all else comes after it.
     *  It is not antialiased, and `filter` has no part in it: DPL_DECODE_FAST decodes JPEGs at
     *  1/2, 1/4 or 1/8 where that leaves the box at least the delivered size; others, and all with
     *  DPL_DECODE_EXACT, are sampled at full size. What lies outside the box is `fill`.
     *  docs/augment.md has the definition [0] */
    int rotate_once;

    /** What random_erase writes. Random numbers are normal ones with mean 0 and deviation 1, in place of
     *  erase_value, normalised as that is; each is a function of (seed, epoch, sample) and its place in
     *  the box alone [DPL_ERASE_VALUE] */
    dpl_erase_mode erase_mode;
} dpl_options;

/* The list file: lines end with LF or CRLF; empty lines and lines that begin with '#' are skipped (a
 * path that does is written ./#name). The label stands behind the last tab of the line, without the
 * blanks around it; nothing there or -1 = unlabelled. Everything before that tab is the path, blanks
 * and further tabs included. When no line has a tab, all are paths of unlabelled pictures; a line
 * without a tab among lines with one is an error. What a label means is one rule for the whole list:
 *   with `classes`:     names of classes, when every label is one; else indices 0..n_classes-1, when
 *                       every label is a decimal number without leading zeros
 *   without `classes`:  indices, when every label is such a number (0..1048575): classes are
 *                       0..the largest; else names: classes are the different labels, sorted
 *                       byte-wise
 * Any other line is DPL_EDATA, and dpl_error_text(NULL) names its number. Order and number of lines
 * are free, the same path may come twice. Files are not looked at before they are read: one that is
 * missing is a bad sample. */

/** Set every field to its default. Pass sizeof *opt. Any thread. */
DPL_API void dpl_options_init(dpl_options *opt, size_t size);

/** One device's share of a batch. Borrowed: valid until dpl_release(). */
typedef struct dpl_part {
    void *pixels; /**< [n][height][width][3] or [n][3][height][width], see dtype and layout;
                                64-byte aligned; memory of `device` */
    const int32_t *labels; /**< [n] class index, -1 = unlabelled; host memory */
    /** Soft labels of options.mixup and cutmix: sample i is mix[i] of class labels[i] and 1 - mix[i]
     *  of class labels2[i]. Where nothing was mixed, mix[i] is 1 and labels2[i] is labels[i]. Both
     *  are [n], host memory, and there with any options */
    const int32_t *labels2;
    const float *mix; /**< 0..1 */
    const uint64_t
        *ids;   /**< [n] sample index in the whole source, whatever the subset; host memory */
    int n;      /**< samples here; 0 is possible in a small last batch */
    int device; /**< position in options.devices */
} dpl_part;

typedef struct dpl_batch {
    uint64_t epoch;       /**< 0-based */
    uint64_t index;       /**< batch within the epoch, 0-based */
    uint64_t first;       /**< position within the epoch of this batch's first sample (all ranks) */
    int planned;          /**< samples of the batch over all ranks before bad ones were left out */
    int n;                /**< samples delivered here: sum of part[].n */
    int parts;            /**< entries of part */
    const dpl_part *part; /**< one per device, in the order of options.devices */
    dpl_dtype dtype;
    dpl_layout layout;
    int width, height;
    void *slot; /**< private */
} dpl_batch;

typedef struct dpl_loader dpl_loader; /* opaque */

/** Open a loader: list the source, check the options, allocate every slot, start the workers,
 *  which begin with epoch 0. Blocks for the listing. Any thread.
 *  @param out  the loader, or NULL on error; free with dpl_close()
 *  @return DPL_OK; DPL_EINVAL, DPL_ENOMEM, DPL_EIO, DPL_EDATA (no pictures, empty class folder …),
 *          DPL_EDEVICE, DPL_ENOTSUP: dpl_error_text(NULL) says what was asked and found */
DPL_API int dpl_open(dpl_loader **out, const dpl_options *opt);

/** Next batch in order, waiting at most timeout_ms (0 = poll, -1 = no limit). Calls of next, release,
 *  set_epoch and state_set on one loader must not overlap; dpl_cancel and dpl_stats_get may.
 *  @return DPL_OK; DPL_EOF once after the last batch of an epoch (the next call goes on with the
 *          next epoch, or gives DPL_EOF again when options.epochs are done); DPL_ETIMEOUT;
 *          DPL_EDATA (more bad samples than max_bad: dpl_error_text(l), dpl_bad_get()); DPL_ECANCELED;
 *          DPL_EFORK; DPL_EINVAL (every slot is held by the caller); DPL_EIO, DPL_EDEVICE */
DPL_API int dpl_next(dpl_loader *l, dpl_batch *out, int timeout_ms);

/** The same for parts on devices with streams: streams[p] of part p waits for the copy, the host
 *  does not. streams may be NULL (then as dpl_next: the host waits), and so may its entries. For a
 *  part on cuda:N an entry is a cudaStream_t of that GPU, whoever made it (name the default stream
 *  cudaStreamLegacy: 0 is NULL). It is borrowed for the call. */
DPL_API int dpl_next_on(dpl_loader *l, dpl_batch *out, void *const *streams, int timeout_ms);

/** Give a batch back; its memory is rewritten once the work queued so far on streams[p] is done
 *  (streams NULL = at once). Never blocks on workers. *b is cleared; a cleared batch is ignored. */
DPL_API void dpl_release(dpl_loader *l, dpl_batch *b, void *const *streams);

/** Stop: a blocked and every later dpl_next() returns DPL_ECANCELED. Any thread, any time. */
DPL_API void dpl_cancel(dpl_loader *l);

/** Stop and join the threads, free everything, set *l to NULL. NULL is fine. Batches not released
 *  yet become invalid. No other call on this loader may be running. */
DPL_API void dpl_close(dpl_loader **l);

/** Go to the start of an epoch. Free of cost when that epoch is the one that comes next anyway.
 *  @return DPL_OK, DPL_EINVAL (a batch is still held), DPL_EFORK, DPL_ECANCELED */
DPL_API int dpl_set_epoch(dpl_loader *l, uint64_t epoch);

/** Position of the loader: where the next dpl_next() goes on. Valid for any number of workers,
 *  ranks and devices; data, seed and order options must be the same. */
typedef struct dpl_state {
    uint64_t epoch;
    uint64_t sample; /**< position within the epoch, counted over all ranks */
    uint64_t count;  /**< samples of the source, for checking */
    uint64_t seed;   /**< for checking */
} dpl_state;

/** State after the batches given out so far. Never blocks. */
DPL_API void dpl_state_get(const dpl_loader *l, dpl_state *out);

/** Go on from a saved state.
 *  @return DPL_OK, DPL_EINVAL (another data set or seed, sample is not at a batch border, or a batch
 *          is held: dpl_error_text(l)), DPL_EFORK, DPL_ECANCELED */
DPL_API int dpl_state_set(dpl_loader *l, const dpl_state *st);

/** What was opened; constant while the loader is open. */
typedef struct dpl_info {
    uint64_t samples;            /**< of the source's subset, all ranks */
    uint64_t batches;            /**< per epoch; the same on every rank */
    uint64_t dropped;            /**< samples per epoch that drop_last leaves out */
    uint64_t ignored_files;      /**< other than pictures by name, hidden files not counted */
    const char *ignored_example; /**< path of one of them, or NULL */
    int classes;
    const char *const *class_names; /**< [classes] in label order */
    const uint64_t *class_counts;   /**< [classes] samples of each */
    int workers, readers;           /**< threads, as in force */
    int prefetch, parts;            /**< as in force */
    uint64_t read_ahead_bytes; /**< of the readers' buffers, at most, where files are below 1 MiB */
    uint64_t slot_bytes;       /**< all batch slots together */
    uint64_t scratch_bytes;    /**< kept per worker, at most */
    uint64_t index_bytes;      /**< the list of samples */
    dpl_index_use index_use;   /**< what became of options.index … */
    const char *index_text;    /**< … and why; NULL with DPL_INDEX_NONE */
    const char *devices;       /**< as in force, one for each part: "cuda:0,cuda:1" … */
    const char *devices_text;  /**< … and why "auto" is "cpu", else NULL */
} dpl_info;
DPL_API void dpl_info_get(const dpl_loader *l, dpl_info *out);

/** Path or name of a sample, for messages; valid until dpl_close(); NULL when out of range. */
DPL_API const char *dpl_sample_name(const dpl_loader *l, uint64_t id);

/** Counters since dpl_open(). Times are summed over the threads of a stage, in seconds. */
typedef struct dpl_stats {
    size_t size;             /**< set to sizeof before the call */
    double seconds;          /**< wall time since open */
    uint64_t batches;        /**< given out by dpl_next */
    uint64_t images;         /**< given out by dpl_next */
    uint64_t prepared;       /**< images finished by workers, given out or not */
    uint64_t bad, warned;    /**< samples refused / decoded with a warning (each file once) */
    uint64_t bytes_read;     /**< encoded bytes */
    uint64_t pixels_decoded; /**< pixels that came out of the decoders */
    uint64_t bytes_out;      /**< bytes written to slots */
    double read_s; /**< time in reads: of the readers, or of the workers when there are none */
    double decode_s, augment_s; /**< worker time at work, by stage */
    double read_wait_s;         /**< worker time waiting for the readers (the source is slower) */
    double starved_s;           /**< worker time without work: the last epoch is done */
    double blocked_s;           /**< worker time waiting for a free slot (the consumer is slower) */
    double upload_s;            /**< time spent queueing copies to devices */
    double wait_s;              /**< consumer time blocked in dpl_next (the loader is slower) */
    uint64_t late;              /**< dpl_next calls that had to wait more than 50 us */
    int workers;
    int ready; /**< finished batches waiting now */
} dpl_stats;
DPL_API void dpl_stats_get(const dpl_loader *l, dpl_stats *out);

/** How near the loader comes to the JPEG decoder's own speed; see dpl_limit_measure(). */
typedef struct dpl_limit {
    int rounds;          /**< measured */
    uint64_t images;     /**< of all rounds */
    double images_per_s; /**< of the loader: median of the rounds */
    double bare_per_s;   /**< of libjpeg alone: median of the rounds */
    double ratio;        /**< images_per_s / bare_per_s of one round: median, least, most */
    double ratio_min, ratio_max;
    double cpu_ratio; /**< the same by processor time of the workers: median. On a busy machine it
                           is the steadier number; it does not see waiting */
} dpl_limit;

/** Measure the loader beside its decoder. Each round takes the next `batches` batches and times, on
 *  the loader's own worker threads, one after the other and in turns first: (a) the loader, from
 *  files to batches that are given back at once; (b) libjpeg-turbo alone, reading from memory, at
 *  the same scale and with the same transforms, the boxes that (a) asked it for. Pictures that are
 *  no JPEGs are decoded with the loader's own decoder in (b).
 *  Blocks for all of it, and holds the files of `batches` batches in memory. No batch may be held.
 *  Counters of dpl_stats_get() go on; the position is left where it was.
 *  @param batches  of a phase, at least 1: take enough for 100 ms or more
 *  @param rounds   1..1000
 *  @return DPL_OK; DPL_EINVAL, DPL_ENOMEM, DPL_EFORK, DPL_ECANCELED; DPL_EDATA and DPL_EIO as
 *          dpl_next() */
DPL_API int dpl_limit_measure(dpl_loader *l, int batches, int rounds, dpl_limit *out);

/** Bad and warned samples so far, each file once, in the order they were met. Any thread.
 *  @param kind  DPL_BAD_REFUSED or DPL_BAD_WARNED
 *  @return DPL_OK, DPL_EOF when i is past the end. Texts are valid until dpl_close(). */
typedef enum dpl_bad_kind { DPL_BAD_REFUSED = 0, DPL_BAD_WARNED = 1 } dpl_bad_kind;
typedef struct dpl_bad {
    uint64_t id;
    const char *path;
    const char *reason;
    dpl_bad_kind kind;
} dpl_bad;
DPL_API int dpl_bad_get(const dpl_loader *l, uint64_t i, dpl_bad *out);

/** Text of the last error of this loader, with file name and cause; NULL = of this thread's last
 *  failed dpl_open(). Never NULL; valid until the next call on the loader (or by the thread). */
DPL_API const char *dpl_error_text(const dpl_loader *l);

#ifdef __cplusplus
}
#endif
#endif
